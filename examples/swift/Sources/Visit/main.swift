import CHoldfast

typealias HTTPResponse = UnsafeMutablePointer<CChar>?
typealias Operation = (OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<HTTPResponse>?) -> Int32

/// The reply as text; it is released.
func text(_ reply: HTTPResponse) -> String {
  defer { holdfast_free(reply) }
  return reply.map { String(cString: $0) } ?? "{}"
}

func call(_ operation: Operation, _ app: OpaquePointer?, _ request: String = "{}") -> String {
  var reply: HTTPResponse = nil
  _ = operation(app, request, &reply)  // the status: a refusal says so in its reply, too
  return text(reply)
}

let folder = CommandLine.arguments.dropFirst().first ?? "app-data"
let config = """
  {"data_dir":"\(folder)","backend":{"url":"https://PROJECT.supabase.co","api_key":"KEY"}}
  """
var app: OpaquePointer?
var reply: HTTPResponse = nil
let status = holdfast_open(config, nil, &app, &reply)
let opened = text(reply)
guard status == HOLDFAST_OK else { fatalError(opened) }
print(call(holdfast_session_resume, app))  // which screen to show, and why
print(call(holdfast_sign_in_begin, app, #"{"method":"bankid"}"#))  // a URL for the browser
holdfast_close(app)
