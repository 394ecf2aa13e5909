/// Which of some leased items the next request has, by the answers to the requests before it.
///
/// The items have places from 0. Those of which nothing is known are sent in parts, from the first to the
/// last. A part that is refused is a group with an item at fault. The groups are searched in turn, and the
/// next part is the first half of what is left of the group:
///
/// - It is stored: the item at fault is in the other half, which need not be sent whole to know that.
/// - It is refused: the search goes on in it. Of the other half nothing is known any more: these items are
///   sent in parts again when all groups are searched.
///
/// So each request halves what is searched, until the item is alone. One item at fault among n costs
/// ⌈log2 n⌉ + 1 requests and those for the other halves. Several cost about as many each, because the
/// other halves share their requests (Hwang's generalised binary splitting).
public struct BatchSearch: Sendable {
  /// What is left of the group that is searched.
  private var open: [Int] = []
  /// The other groups, the next one first.
  private var waiting: [[Int]]
  /// Nothing is known of these, and they are sent before a group is searched.
  private var next: [Int]
  /// Nothing is known of these, and they are sent after the groups.
  private var spared: [Int] = []
  public private(set) var stored: [Int] = []

  /// Nothing is known of the items but of these groups of places: in each, an item is at fault.
  public init(count: Int, guilty groups: [[Int]] = []) {
    waiting = groups
    let isGuilty = groups.reduce(into: [Bool](repeating: false, count: count)) { found, group in
      for place in group { found[place] = true }
    }
    next = (0..<count).filter { !isGuilty[$0] }
    advance()
  }

  public var isDone: Bool { open.isEmpty && next.isEmpty }

  /// Whether the next part is of a group with an item at fault.
  public var isSearching: Bool { !open.isEmpty }

  /// What is left of the groups that have an item at fault.
  public var guilty: [[Int]] { open.isEmpty ? waiting : [open] + waiting }

  /// The items that are not settled and of which nothing is known.
  public var unknown: [Int] { next + spared }

  private mutating func advance() {
    guard isDone else { return }
    if waiting.isEmpty {
      next = spared.sorted()
      spared = []
    } else {
      open = waiting.removeFirst()
    }
  }

  /// The part that the next request has, in ascending order. `most`: how many items of which nothing is
  /// known.
  public func part(most: Int) -> [Int] {
    Array(isSearching ? open.prefix(max(1, open.count / 2)) : next.prefix(max(1, most)))
  }

  /// The next part was stored.
  public mutating func store(_ part: [Int]) {
    stored += part
    if isSearching { open.removeFirst(part.count) } else { next.removeFirst(part.count) }
    advance()
  }

  /// The next part was refused for one of its items. A single item is the caller's: it is at fault.
  public mutating func refuse(_ part: [Int]) {
    let isAlone = part.count == 1
    if isSearching {
      spared += open.dropFirst(part.count)
      open = isAlone ? [] : part
    } else {
      next.removeFirst(part.count)
      if !isAlone { waiting.append(part) }
    }
    advance()
  }
}

/// How many items a request has of which nothing is known, by how many such requests are refused.
///
/// A request tells most when it is refused as often as it is stored: with the share p of items at fault,
/// at about 0.69 / p items. A refusal makes the next ones smaller, and a stored one makes them a little
/// larger, so the size stays near there while items are refused, and is back at the largest one seven
/// requests after the last refusal.
public struct BatchSize: Sendable {
  public private(set) var items = BatchPolicy.maxItems

  public init() {}

  /// Whether items were refused lately.
  public var isReduced: Bool { items < BatchPolicy.maxItems }

  /// How many items are leased at once, for several requests.
  public var leased: Int { min(items * BatchPolicy.requestsInLease, BatchPolicy.maxItems) }

  public mutating func refuse() {
    items = max(1, min(items * 7 / 10, BatchPolicy.carefulItems))
  }

  /// A request of so many items was stored. A smaller one tells less than the size promises.
  public mutating func store(_ count: Int) {
    if count >= items { items = min(items + max(1, items * 3 / 10), BatchPolicy.maxItems) }
  }
}
