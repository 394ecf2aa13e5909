/// The one error type: what went wrong, where in the request, and what else is known.
///
/// `message` is for developers and never holds user data; `field` is a JSON Pointer.
public struct Failure: Error {
  public var code: ErrorCode
  public var message: String
  public var field: String?
  public var detail: JSON?

  public init(_ code: ErrorCode, _ message: String, field: String? = nil, detail: JSON? = nil) {
    self.code = code
    self.message = message
    self.field = field
    self.detail = detail
  }

  /// A broken promise of this library's own; never the host's fault.
  public static func defect(_ message: String) -> Failure { Failure(.internalDefect, message) }

  /// The error reply.
  public var reply: JSON {
    [
      "error": [
        "code": .string(code.rawValue), "message": .string(message),
        "field": JSON(field), "retryable": .bool(code.retryable), "detail": detail ?? [:],
      ]
    ]
  }
}
