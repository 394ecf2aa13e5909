import TestSupport
import Testing

@testable import Policy

/// A queue whose server refuses every request that has a bad item, and names none.
private struct Drain {
  private(set) var requests = 0
  /// How many items all requests had.
  private(set) var sent = 0
  private(set) var stored = 0
  private(set) var parked: [Int] = []
  private(set) var size = BatchSize()
  /// How many times items were leased.
  private(set) var leases = 0

  /// `patience`: after so many requests what a lease has left is put back.
  init(_ count: Int, patience: Int = .max, isBad: (Int) -> Bool) {
    // Items by retry group, and those of group 0.
    var fresh = Array((0..<count).reversed())
    var groups: [(number: Int, items: [Int])] = []
    var last = 0
    while true {
      var items: [Int]
      var group = 0
      var guilty: [[Int]] = []
      if !fresh.isEmpty {
        // Before a request was refused, there is no lease for several.
        items = (0..<min(size.leased, fresh.count)).map { _ in fresh.removeLast() }
      } else if let first = groups.first {
        group = first.number
        items = group & 1 == 1 ? first.items : Array(first.items.prefix(size.leased))
        if group & 1 == 1 { guilty = [Array(items.indices)] }
        groups[0].items.removeFirst(items.count)
        if groups[0].items.isEmpty { groups.removeFirst() }
        // Other groups that were refused are searched with the first one.
        while group & 1 == 1, let next = groups.first, next.number & 1 == 1,
          items.count + BatchPolicy.carefulItems <= BatchPolicy.maxItems
        {
          guilty.append(Array(items.count..<items.count + next.items.count))
          items += next.items
          groups.removeFirst()
        }
      } else {
        break
      }
      leases += 1
      let isHand = size.isReduced || group & 1 == 1
      var left = isHand ? patience : 1
      var search = BatchSearch(count: items.count, guilty: guilty)
      while !search.isDone, left > 0 {
        left -= 1
        let part = search.part(most: size.items)
        let isSearching = search.isSearching
        requests += 1
        sent += part.count
        if part.contains(where: { isBad(items[$0]) }) {
          search.refuse(part)
          if part.count == 1 { parked.append(items[part[0]]) }
          if !isSearching { size.refuse() }
        } else {
          search.store(part)
          stored += part.count
          if !isSearching { size.store(part.count) }
        }
      }
      for part in search.guilty where !part.isEmpty {
        last += 2
        groups.append((last - 1, part.map { items[$0] }))
      }
      if !search.unknown.isEmpty {
        let even = group & 1 == 1 ? group + 1 : group
        let back = search.unknown.map { items[$0] }
        if even == 0 {
          fresh += back.reversed()
        } else if let known = groups.firstIndex(where: { $0.number == even }) {
          groups[known].items = back + groups[known].items
        } else {
          groups.append((even, back))
        }
      }
      groups.sort { $0.number < $1.number }
    }
  }
}

/// The same places in every run.
private struct Places {
  var state: UInt64

  /// A number below a million.
  mutating func next() -> Int {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Int(state >> 33) % 1_000_000
  }

  static func bad(_ count: Int, perMillion: Int, seed: UInt64) -> Set<Int> {
    var places = Places(state: seed)
    return Set((0..<count).filter { _ in places.next() < perMillion })
  }
}

@Suite struct BatchSearchTests {
  @Test func oneBadItemIsFoundInFewRequestsAtEveryPlace() {
    // Powers of two, and those around them, are the edges of the rule.
    for count in Array(1...66) + [127, 128, 129, 255, 256, 257, 499, 500] {
      // ⌈log2 n⌉
      let steps = Int.bitWidth - (count - 1).leadingZeroBitCount
      for bad in 0..<count {
        let drain = Drain(count) { $0 == bad }
        expect(drain.parked, equals: [bad])
        expect(drain.stored, equals: count - 1)
        expect(drain.requests <= 2 * steps + 2, "\(bad) of \(count)")
      }
    }
  }

  /// Requests and sent items for 20,000 items, at most.
  @Test(arguments: [
    (0, 40, 20_000), (1_000, 400, 33_000), (10_000, 2_050, 42_000), (100_000, 12_000, 52_000),
    (1_000_000, 20_100, 24_000),
  ])
  func manyBadItemsCostAboutTheFewestRequests(_ perMillion: Int, _ requests: Int, _ sent: Int) {
    for seed in 1...3 as ClosedRange<UInt64> {
      let bad = Places.bad(20_000, perMillion: perMillion, seed: seed)
      let drain = Drain(20_000) { bad.contains($0) }
      expect(Set(drain.parked) == bad && drain.parked.count == bad.count)
      expect(drain.stored, equals: 20_000 - bad.count)
      expect(drain.requests <= requests)
      expect(drain.sent <= sent)
    }
  }

  @Test func anySetOfBadItemsIsFoundAndNothingElse() {
    for seed in 1...300 as ClosedRange<UInt64> {
      let count = 1 + Int(seed * 7 % 120)
      let bad = Places.bad(count, perMillion: Int(seed * 3_333), seed: seed)
      let drain = Drain(count) { bad.contains($0) }
      expect(drain.parked.sorted(), equals: bad.sorted())
      expect(drain.stored, equals: count - bad.count)
      // Never more than a search for each, and the items themselves.
      expect(drain.requests <= 10 * bad.count + 1 + count)
    }
  }

  @Test(arguments: [1, 2, 3, 7, 30])
  func aSearchThatIsInterruptedGoesOn(_ patience: Int) {
    for seed in 1...sized(25, full: 100) as ClosedRange<UInt64> {
      let count = 1 + Int(seed * 97 % 900)
      let bad = Places.bad(count, perMillion: Int(seed * 3_333), seed: seed)
      let drain = Drain(count, patience: patience) { bad.contains($0) }
      expect(drain.parked.sorted(), equals: bad.sorted())
      expect(drain.stored, equals: count - bad.count)
      expect(drain.requests <= 12 * bad.count + 10 + count)
    }
  }

  @Test func theFirstHalfIsSentAndTheOtherIsKnownByIt() {
    // Given eight items, of which one is at fault
    var search = BatchSearch(count: 8, guilty: [Array(0..<8)])
    // When the first half is stored, then the other need not be sent whole
    expect(search.part(most: 500), equals: [0, 1, 2, 3])
    search.store([0, 1, 2, 3])
    expect(search.part(most: 500), equals: [4, 5])
    // When that is refused, then nothing is known of the rest
    search.refuse([4, 5])
    expect((search.guilty, search.unknown) == ([[4, 5]], [6, 7]))
    expect(search.part(most: 500), equals: [4])
    search.store([4])
    // Then the item is alone, and is sent for the server's reason
    expect(search.part(most: 500), equals: [5])
    search.refuse([5])
    // And the rest is sent as if it had never been refused
    expect(!search.isDone && !search.isSearching)
    expect(search.guilty.isEmpty)
    expect(search.part(most: 500), equals: [6, 7])
    search.store([6, 7])
    expect(search.isDone)
    expect(search.stored, equals: [0, 1, 2, 3, 4, 6, 7])
  }

  @Test func aRefusedPartIsSearchedAfterTheUnknownItems() {
    var search = BatchSearch(count: 7)
    expect(search.part(most: 3), equals: [0, 1, 2])
    search.refuse([0, 1, 2])
    expect(search.part(most: 3), equals: [3, 4, 5])
    search.store([3, 4, 5])
    // A single one is at fault
    expect(search.part(most: 3), equals: [6])
    search.refuse([6])
    expect((search.guilty, search.stored) == ([[0, 1, 2]], [3, 4, 5]))
    expect(search.isSearching && search.part(most: 3) == [0])
  }

  @Test func groupsAreSearchedInTurnAndTheSparedItemsSentTogether() {
    var search = BatchSearch(count: 6, guilty: [[1, 4], [0, 2, 3]])
    // Of the last item nothing is known: it goes first
    expect(search.part(most: 9), equals: [5])
    search.store([5])
    expect(search.guilty, equals: [[1, 4], [0, 2, 3]])
    search.refuse(search.part(most: 1))
    // The first is found, nothing is known of its neighbour, and the next group follows
    expect(search.unknown, equals: [4])
    expect(search.part(most: 1), equals: [0])
    search.refuse([0])
    expect(search.guilty.isEmpty)
    // Then all items that were spared, in their order
    expect(search.part(most: 9), equals: [2, 3, 4])
    search.refuse([2, 3, 4])
    expect(search.part(most: 9), equals: [2])
    search.store([2])
    search.store(search.part(most: 9))
    search.refuse(search.part(most: 9))
    expect(search.isDone && search.stored == [5, 2, 3])
  }

  @Test func anItemThatIsStoredAfterAllEndsTheSearch() {
    var search = BatchSearch(count: 1, guilty: [[0]])
    search.store([0])
    expect(search.isDone && search.stored == [0])
  }

  @Test func batchesGrowAgainWhenRefusalsEnd() {
    var size = BatchSize()
    size.refuse()
    var sizes: [Int] = []
    for _ in 0..<7 {
      sizes.append(size.items)
      size.store(size.items)
    }
    expect(sizes, equals: [125, 162, 210, 273, 354, 460, 500])
    expect(!size.isReduced && size.leased == 500)
    // A small one says little
    size.refuse()
    size.store(124)
    expect(size.items, equals: 125)
    for _ in 0..<20 { size.refuse() }
    expect((size.items, size.leased) == (1, 8))
  }
}
