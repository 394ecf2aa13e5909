/// The only error type of the core.
///
/// `message` is for developers and never holds user data. `field` is a JSON Pointer into the
/// request. `detail` holds further facts for the host.
public struct Failure: Error {
  /// A reference instead of four stored values: every call that can throw gets smaller.
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

  /// For messages that are put together at run time.
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

  /// A defect of this library, never of the host.
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
