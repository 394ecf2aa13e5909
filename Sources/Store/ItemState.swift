public import Base

/// The state of an item. Stored items are erased, so they have no state.
public enum ItemState: Equatable, Sendable {
  /// To be sent now.
  case pending
  /// In a request; the lease names its holder.
  case sending
  /// To be sent later.
  case waiting(WaitReason)
  /// Refused for good: the user decides.
  case parked

  /// A state without its details: the number in the file, and the word in JSON.
  public enum Code: Int64, CaseIterable, Sendable {
    case pending = 0
    case sending = 1
    case waiting = 2
    case parked = 3

    public var word: String {
      switch self {
      case .pending: return "pending"
      case .sending: return "sending"
      case .waiting: return "waiting"
      case .parked: return "parked"
      }
    }

    public init?(word: String) {
      guard let found = Code.allCases.first(where: { $0.word == word }) else { return nil }
      self = found
    }
  }

  public var code: Code {
    switch self {
    case .pending: return .pending
    case .sending: return .sending
    case .waiting: return .waiting
    case .parked: return .parked
    }
  }

  public var word: String { code.word }

  /// When an item that waits becomes pending by itself.
  public var until: SteadyTime? { waitReason?.pause?.until }

  var pause: Pause { waitReason?.pause ?? .none }

  var waitReason: WaitReason? { if case .waiting(let reason) = self { reason } else { nil } }

  /// nil when the numbers are not those of a state.
  init?(code: Int64?, waitReason: Int64?, _ pause: Pause) {
    switch code.flatMap({ Code(rawValue: $0) }) {
    case .pending: self = .pending
    case .sending: self = .sending
    case .waiting:
      guard let reason = WaitReason(code: waitReason, pause) else { return nil }
      self = .waiting(reason)
    case .parked: self = .parked
    case nil: return nil
    }
  }
}

/// The time for which an item waits.
public struct Pause: Equatable, Sendable {
  /// 0: there is no pause.
  public static let none = Pause(since: 0, until: 0)

  public let since: SteadyTime
  public let until: SteadyTime

  public init(since: SteadyTime, until: SteadyTime) { (self.since, self.until) = (since, until) }

  /// No pause is longer (`Backoff.maxDelayMS`), unless a damaged file says so.
  static let longestMS: Int64 = 86_700_000

  /// How long it still lasts; 0 or less: it is over. One that has not begun was stored in another boot, under another
  /// clock, and counts as over.
  public func leftMS(_ now: SteadyTime) -> Int64 {
    max(since.ms, until.ms - Pause.longestMS) > now.ms ? 0 : until - now
  }

  public func lasts(at now: SteadyTime) -> Bool { leftMS(now) > 0 }
}

/// Why an item waits.
public enum WaitReason: Equatable, Sendable {
  /// Another item must be stored first.
  case dependency
  /// The server takes no item of this batch key for now: a pause of our own.
  case time(Pause)
  /// The server did not accept this organisation's items from the user.
  case organisation
  /// The configuration does not list the item's kind.
  case kind
  /// The same as `time`, but the server itself asked for the pause.
  case server(Pause)
  /// Something on the way to the service refused this item.
  case blocked(Pause)

  /// The number in the file; 0 stands for "does not wait".
  var code: Int64 {
    switch self {
    case .dependency: return 1
    case .time: return 2
    case .organisation: return 3
    case .kind: return 4
    case .server: return 5
    case .blocked: return 6
    }
  }

  /// When the item becomes pending by itself; nil: something else ends its wait.
  public var pause: Pause? {
    switch self {
    case .time(let pause), .server(let pause), .blocked(let pause): return pause
    case .dependency, .organisation, .kind: return nil
    }
  }

  init?(code: Int64?, _ pause: Pause) {
    switch code {
    case 1: self = .dependency
    case 2: self = .time(pause)
    case 3: self = .organisation
    case 4: self = .kind
    case 5: self = .server(pause)
    case 6: self = .blocked(pause)
    default: return nil
    }
  }
}
