// The smallest host in Swift: opens a folder, asks which screen to show, begins a sign-in.
import CHoldfast

/// A reply in JSON, which the host must free.
typealias Reply = UnsafeMutablePointer<CChar>?
typealias Operation = (OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<Reply>?) -> Int32

/// Copies a reply into a string and frees it.
func text(_ reply: Reply) -> String {
  defer { holdfast_free(reply) }
  return reply.map { String(cString: $0) } ?? "{}"
}

/// Calls an operation and returns its reply.
func call(_ operation: Operation, _ app: OpaquePointer?, _ request: String = "{}") -> String {
  var reply: Reply = nil
  _ = operation(app, request, &reply)  // ignore the status: an error is also in the reply
  return text(reply)
}

let folder = CommandLine.arguments.dropFirst().first ?? "app-data"
let config = """
  {"data_dir":"\(folder)","backend":{"url":"https://PROJECT.supabase.co","api_key":"KEY"},
   "redirect_url":"com.example.app:/signed-in",
   "keystore":{"kind":"file"},"policy":{"biometric":"off"}}
  """
var app: OpaquePointer?
var reply: Reply = nil
let status = holdfast_open(config, nil, &app, &reply)
let opened = text(reply)
guard status == HOLDFAST_OK else { fatalError(opened) }
print(call(holdfast_session_resume, app))  // which screen to show, and why
print(call(holdfast_sign_in_begin, app, #"{"method":"bankid"}"#))  // a URL for the browser
holdfast_close(app)
