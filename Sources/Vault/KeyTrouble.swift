public import Base

/// What a key store did not do: which key, which operation, and its answer. For errors and the log; it
/// holds no secret.
public struct KeyTrouble: Sendable {
  public enum Operation: UInt32, Sendable {
    case load, save, erase
    /// A key was loaded to see whether the store has what it was given.
    case readBack

    fileprivate var word: StaticCString {
      switch self {
      case .load: "load"
      case .save: "save"
      case .erase: "erase"
      case .readBack: "read_back"
      }
    }
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
    detail.set("key", JSON(name.kind.word))
    detail.set("operation", JSON(operation.word))
    detail.set("answer", JSON(answer.word))
    return detail
  }

  /// For developers.
  @inline(never)
  public func text(_ prefix: StaticCString) -> String {
    var text = prefix.string
    for word in [operation.word.string, name.kind.word.string, answer.word.string] {
      text += ", "
      text += word
    }
    return text
  }

  /// Whether it is a fault. That a key is not there is known before it is made and after a lock, and the
  /// user's own answers to the prompt are decisions.
  fileprivate var isFault: Bool {
    switch answer {
    case .notFound: operation != .load
    case .failed, .locked, .wrongLength: true
    default: name != .biometric
    }
  }

  fileprivate var bit: UInt32 { KeyTrouble.bit(operation, name) }

  fileprivate static func bit(_ operation: Operation, _ name: KeyName) -> UInt32 {
    let place: UInt32 =
      switch name.kind {
      case .device: 0
      case .session: 8
      case .biometric: 16
      }
    return 1 << (place + operation.rawValue)
  }
}

/// The last trouble with a key store. Every fault is a line of the log, which is not repeated until the
/// operation has succeeded.
public struct KeyTroubles {
  public private(set) var last: KeyTrouble?
  /// The operations whose fault was told, as bits.
  private var told: UInt32 = 0

  public init() {}

  /// Remember a trouble; returns its refusal, to throw.
  @inline(never)
  public mutating func note(_ trouble: KeyTrouble) -> KeyRefusal {
    last = trouble
    if trouble.isFault, told & trouble.bit == 0 {
      told |= trouble.bit
      Log.line(.warning, trouble.text("key store"))
    }
    return trouble.answer
  }

  @inline(never)
  public mutating func succeeded(_ operation: KeyTrouble.Operation, _ name: KeyName) {
    let bit = KeyTrouble.bit(operation, name)
    if last?.bit == bit { last = nil }
    told &= ~bit
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
