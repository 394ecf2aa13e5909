/// How many items go into one request.
public enum BatchPolicy {
  /// The hosted server publishes no limit; these keep a batch well under what was
  /// measured to work, and its loss cheap.
  public static let mostItems = 500
  public static let mostBytes = 1_000_000

  /// How many of the items, in their order, go into the next request: at least one if there is one.
  /// `sizes` are the items' bodies in bytes.
  public static func length(of sizes: some Sequence<Int>) -> Int {
    var count = 0
    var bytes = 0
    for size in sizes {
      let (total, overflow) = bytes.addingReportingOverflow(max(size, 0))
      if count > 0 && (overflow || total > mostBytes) || count == mostItems { break }
      count += 1
      bytes = overflow ? Int.max : total
    }
    return count
  }
}

/// The way through one batch: which of its items to send next, and which were found at fault.
///
/// A refused batch is halved until the items at fault are alone. For k of them in a batch of n that
/// takes at most 2·k·⌈log2 n⌉ requests beside the first (QUE-3). Nothing is concluded about items
/// that were not sent: two that cannot go together may go apart.
public struct BatchPlan: Equatable, Sendable {
  /// The parts still to be sent; the next one is last.
  private var open: [Range<Int>]
  /// No part holds more: what was too heavy once is not tried again.
  private var most: Int

  /// A plan for `count` items, numbered from 0 in their order.
  public init(count: Int) {
    open = count > 0 ? [0..<count] : []
    most = max(count, 1)
  }

  /// The items to send next, always in their order; nil when all are dealt with. Asking does not
  /// move on: what has no answer, or a passing refusal, is sent again as it is.
  public var next: Range<Int>? { open.last }

  /// The server took the part.
  public mutating func stored() {
    _ = open.popLast()
  }

  /// The server refused the part because of some of its items. Returns the item at fault when it
  /// was alone; the plan goes on without it.
  public mutating func refused() -> Int? {
    guard let part = open.popLast() else { return nil }
    guard part.count > 1 else { return part.lowerBound }
    halve(part)
    return nil
  }

  /// The server refused the part for its weight: nothing as large is sent again. Returns the item
  /// that was too heavy alone; the plan goes on without it.
  public mutating func tooHeavy() -> Int? {
    guard let part = open.popLast() else { return nil }
    guard part.count > 1 else { return part.lowerBound }
    most = min(most, (part.count + 1) / 2)
    let others = open
    open = []
    for other in others + [part] { cut(other) }
    return nil
  }

  /// Adds `part`, cut until no part holds more than `most`.
  private mutating func cut(_ part: Range<Int>) {
    guard part.count > most else {
      open.append(part)
      return
    }
    let middle = part.lowerBound + (part.count + 1) / 2
    cut(middle..<part.upperBound)
    cut(part.lowerBound..<middle)
  }

  private mutating func halve(_ part: Range<Int>) {
    let middle = part.lowerBound + (part.count + 1) / 2
    open.append(middle..<part.upperBound)
    open.append(part.lowerBound..<middle)
  }
}
