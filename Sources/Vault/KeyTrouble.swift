public import Base

/// What a key store did not do: which key, which operation, and its answer. For errors and the log; it
/// holds no secret.
public struct KeyTrouble: Sendable {
  /// The raw value is its name in the API.
  public enum Operation: String, Sendable {
    case load, save, erase
    /// A key was loaded to see whether the store has what it was given.
    case readBack = "read_back"
  }

  public let operation: Operation
  public let name: KeyName
  public let answer: KeyRefusal

  public init(_ operation: Operation, _ name: KeyName, _ answer: KeyRefusal) {
    self.operation = operation
    self.name = name
    self.answer = answer
  }

  /// For the error's `detail`.
  public var detail: JSON {
    let detail: JSON = [:]
    detail.set("key", .string(name.kind.rawValue))
    detail.set("operation", .string(operation.rawValue))
    detail.set("answer", JSON(answer.word))
    return detail
  }

  /// For developers.
  @inline(never)
  public func text(_ prefix: StaticCString) -> String {
    var text = prefix.string
    for word in [operation.rawValue, name.kind.rawValue, answer.word.string] {
      text += ", "
      text += word
    }
    return text
  }

  /// Whether it is a fault. That a key is not there is known before it is made and after a lock, and the
  /// user's own answers to the prompt are decisions.
  var isFault: Bool {
    switch answer {
    case .notFound: operation != .load
    case .failed, .locked, .wrongLength: true
    default: name != .biometric
    }
  }

  func isAbout(_ operation: Operation, _ name: KeyName) -> Bool {
    self.operation == operation && self.name.kind == name.kind
  }
}

extension KeyRefusal {
  /// Its name in the API.
  fileprivate var word: StaticCString {
    switch self {
    case .notFound: "not_found"
    case .locked: "locked"
    case .cancelled: "cancelled"
    case .failed: "failed"
    case .lockout: "lockout"
    case .lockoutPermanent: "lockout_permanent"
    case .notEnrolled: "not_enrolled"
    case .invalidated: "invalidated"
    case .unavailable: "unavailable"
    case .damaged: "damaged"
    case .otherKey: "other_key"
    case .wrongLength: "wrong_length"
    case .stillThere: "still_there"
    }
  }
}
