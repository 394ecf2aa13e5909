/// Items that failed together: they are sent apart from all others, so that items that fail again and again delay
/// none. Groups are numbered as time goes on. So the numbers are the order in which groups are sent, and tell what
/// happened after a failure.
public struct RetryGroup: Comparable, ExpressibleByIntegerLiteral, Sendable {
  public let number: Int64

  public init(_ number: Int64) { self.number = number }

  public init(integerLiteral number: Int64) { self.number = number }

  /// The items have not failed: they are sent before all groups.
  public static var noGroup: RetryGroup { 0 }

  /// One of the items is known to be at fault: halves are sent until it is alone.
  public var isSearched: Bool { number & 1 == 1 }

  /// The group for a search, if this one is new. Each new one leaves room for it.
  public var searched: RetryGroup { RetryGroup(number - 1) }

  public static func < (left: RetryGroup, right: RetryGroup) -> Bool { left.number < right.number }
}

/// How an item has failed: not at all, not alone (`refused`), or alone.
public struct FailureHistory: Equatable, Sendable {
  /// 0: not at all. Below 0: the negated number of a retry group. Above 0: how often it failed alone.
  let number: Int64

  init(_ number: Int64) { self.number = number }

  public static var clean: FailureHistory { FailureHistory(0) }

  /// The server has refused it, or a batch with it, for what no user gave. `since`: the newest retry group then.
  public static func refused(since group: RetryGroup) -> FailureHistory {
    FailureHistory(0 &- group.number)
  }

  /// It is sent alone and waits for itself.
  public static func alone(failures: Int64) -> FailureHistory { FailureHistory(failures) }

  public var isClean: Bool { number == 0 }
  public var isRefused: Bool { number < 0 }
  public var isAlone: Bool { number > 0 }

  /// How often it failed alone.
  public var failures: Int64 { max(number, 0) }

  /// The retry group since which it counts whether others are stored. An item that fails alone gets a new group each
  /// time.
  public func since(_ group: RetryGroup) -> RetryGroup {
    isRefused ? RetryGroup(0 &- number) : group
  }
}
