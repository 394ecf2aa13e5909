import CHoldfast

/// An operation failed. `code` is for programs, `message` for developers; neither holds data of users.
public struct HoldfastError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The class of the error: HOLDFAST_* of `holdfast.h`.
  public let status: Int32
  /// What is wrong, and in which field.
  public let fault: Fault

  public init(status: Int32, fault: Fault) {
    self.status = status
    self.fault = fault
  }

  /// `noun.reason`: stable.
  public var code: ErrorCode { fault.code }
  public var message: String { fault.message }
  /// The field of the request that is wrong, as a JSON Pointer; nil: no single field.
  public var field: String? { fault.field }
  /// Whether the same call may succeed later.
  public var retryable: Bool { fault.retryable }

  public var description: String {
    "\(fault.code)\(fault.field.map { " at \($0)" } ?? ""): \(fault.message)"
  }
}

extension HoldfastError {
  init(
    _ status: Int32, _ code: ErrorCode, _ message: String, field: String? = nil, retry: Bool = false
  ) {
    self.init(
      status: status,
      fault: Fault(code: code, message: message, field: field, retryable: retry, detail: [:]))
  }

  /// The handle is closed.
  static var closed: HoldfastError { HoldfastError(withoutReply: HOLDFAST_CLOSED) }

  /// A key store has called the library.
  static var reentered: HoldfastError {
    HoldfastError(HOLDFAST_BUSY, .handleReentered, "a key store must not call the library")
  }

  /// The error of a status that came without a reply.
  init(withoutReply status: Int32) {
    switch status {
    case HOLDFAST_KEYSTORE:
      self.init(status, .keystoreFailed, "the key store did not answer", retry: true)
    case HOLDFAST_STORAGE:
      self.init(status, .storageFailed, "a file could not be read", retry: true)
    case HOLDFAST_FULL: self.init(status, .storageFull, "the disk is full", retry: true)
    case HOLDFAST_BUSY: self.init(status, .storageBusy, "another process is writing", retry: true)
    case HOLDFAST_CLOSED: self.init(status, .handleClosed, "the handle is closed")
    case HOLDFAST_FORKED: self.init(status, .handleForked, "the handle is the parent process's")
    case HOLDFAST_NOMEM: self.init(status, .memoryExhausted, "out of memory", retry: true)
    default: self.init(status, .internalDefect, "status \(status) without a reply")
    }
  }

  /// The reply is not what the schema says.
  init(_ unreadable: Unreadable) {
    self.init(HOLDFAST_INTERNAL, .internalDefect, "the reply is no \(unreadable.what)")
  }
}
