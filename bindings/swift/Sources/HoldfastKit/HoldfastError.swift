import CHoldfast
import Foundation

/// An operation failed. `code` is for programs, `message` for developers; neither holds data of users.
public struct HoldfastError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The class of the error: HOLDFAST_* of `holdfast.h`.
  public let status: Int32
  /// `noun.reason`: stable.
  public let code: ErrorCode
  public let message: String
  /// The field of the request that is wrong, as a JSON Pointer; nil: no single field.
  public let field: String?
  /// Whether the same call may succeed later.
  public let retryable: Bool
  /// What else is known; the comment of the `code` says what.
  public let detail: [String: JSON]

  public var description: String { "\(code)\(field.map { " at \($0)" } ?? ""): \(message)" }

  init(
    _ status: Int32, _ code: ErrorCode, _ message: String, field: String? = nil,
    retry: Bool = false,
    detail: [String: JSON] = [:]
  ) {
    self.status = status
    self.code = code
    self.message = message
    self.field = field
    self.retryable = retry
    self.detail = detail
  }

  /// The error in a reply.
  init(_ status: Int32, _ reply: Data) {
    struct Reply: Decodable { let error: Fault }
    struct Fault: Decodable {
      let code: ErrorCode, message: String, field: String?, retryable: Bool, detail: [String: JSON]
    }
    guard let fault = try? JSONDecoder().decode(Reply.self, from: reply).error else {
      self.init(withoutReply: status)
      return
    }
    self.init(
      status, fault.code, fault.message, field: fault.field, retry: fault.retryable,
      detail: fault.detail)
  }

  /// The error of a status that came without a reply.
  init(withoutReply status: Int32) {
    switch status {
    case HOLDFAST_CLOSED: self.init(status, .handleClosed, "the handle is closed")
    case HOLDFAST_NOMEM: self.init(status, .memoryExhausted, "out of memory", retry: true)
    default: self.init(status, .internalDefect, "status \(status) without a reply")
    }
  }

  /// A key store has called the library.
  static var reentered: HoldfastError {
    HoldfastError(HOLDFAST_BUSY, .handleReentered, "a key store must not call the library")
  }
}
