/// The one error type: what went wrong, where in the request, and what else is known.
///
/// `message` is for developers and never holds user data; `field` is a JSON Pointer.
public struct Failure: Error {
  /// One word, so that the many calls that may fail stay small.
  private final class Box: Sendable {
    let code: ErrorCode
    let message: String
    let field: String?
    let detail: JSON?

    init(_ code: ErrorCode, _ message: String, _ field: String?, _ detail: JSON?) {
      self.code = code
      self.message = message
      self.field = field
      self.detail = detail
    }
  }

  private let box: Box

  public var code: ErrorCode { box.code }
  public var message: String { box.message }
  public var field: String? { box.field }
  public var detail: JSON? { box.detail }

  /// For texts that hold figures or names.
  @_disfavoredOverload
  @inline(never)
  public init(_ code: ErrorCode, _ message: String, field: String? = nil, detail: JSON? = nil) {
    box = Box(code, message, field, detail)
  }

  @inline(never)
  public init(
    _ code: ErrorCode, _ message: StaticCString, field: String? = nil, detail: JSON? = nil
  ) {
    box = Box(code, message.string, field, detail)
  }

  /// A broken promise of this library's own; never the host's fault.
  public static func defect(_ message: StaticCString) -> Failure {
    Failure(.internalDefect, message)
  }

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
