import Base
import TestSupport
import Testing

@testable import Store

@Suite struct QueueBatchesTests {
  let folder: TemporaryFolder
  let table: QueueTable

  init() throws {
    folder = try TemporaryFolder()
    table = QueueTable(try folder.open())
  }

  private func take(
    _ items: Int = 99, size: Int64 = 10_000, holder: [UInt8] = [1],
    until: SteadyTime = 50
  ) throws -> [Int64] {
    try table.take(
      of: tag(1), holder: holder, until: until, maximumSize: size
    ) { _ in items }.map { $0.sequence }
  }

  @Test func theLimitOfABatchDependsOnItsKey() throws {
    for number in 0..<6 {
      let row = queueRow(number)
      if number < 2 { row.batchKey = tag(9) }
      _ = try table.insert(row)
    }
    func take() throws -> [Int64] {
      try table.take(of: tag(1), holder: [1], until: 50, maximumSize: 10_000) {
        $0 == tag(9) ? 1 : 3
      }.map { $0.sequence }
    }
    try expect((0..<4).map { _ in try take() }, equals: [[1], [2], [3, 4, 5], [6]])
  }

  @Test(arguments: [(Int64(1), 1), (5, 1), (6, 2), (8, 2), (9, 3)] as [(Int64, Int)])
  func theLimitOfBytesIsInclusiveAndTheFirstItemMayExceedIt(size: Int64, count: Int) throws {
    try table.fill(3)
    try expect(take(size: size).count, equals: count)
  }

  @Test func anItemThatFailsAloneIsABatchOfItsOwn() throws {
    for number in 0..<6 {
      let row = queueRow(number)
      row.history = FailureHistory([0, 3, -1, 1, 0, 0][number])
      _ = try table.insert(row)
    }
    try expect(take(), equals: [1, 3, 5, 6])
    // A later item does not join it.
    _ = try table.insert(queueRow(6))
    try expect(take(), equals: [2])
    try expect(take(), equals: [4])
    try expect(take(), equals: [7])
    try expect(take().isEmpty)
  }

  @Test func theLimitOfItemsIsInclusive() throws {
    try table.fill(3)
    try expect(take(2), equals: [1, 2])
    try expect(take(2), equals: [3])
  }

  @Test func fartherRetryGroupsComeLaterAndEachByItself() throws {
    try table.fill(6)
    for (sequence, group) in [(1, 4), (2, 4), (3, 2), (4, 2)] {
      try table.transition(Int64(sequence), .pending, retryGroup: RetryGroup(Int64(group)))
    }
    try expect(take(), equals: [5, 6])
    try expect(take(), equals: [3, 4])
    try expect(take(), equals: [1, 2])
  }

  @Test func whatIsSparedOfAGroupJoinsTheOthers() throws {
    try table.fill(5)
    for sequence in 1...4 { try table.transition(Int64(sequence), .pending, retryGroup: 1) }
    try table.transition(5, .pending, retryGroup: 2)
    try expect(take(), equals: [1, 2])
    // Those that are sent stay in the group.
    try table.spare(1, to: 2, of: tag(1))
    try table.transition(1, .pending)
    try table.transition(2, .pending)
    try expect(take(), equals: [1])
    try expect(take(), equals: [2])
    try expect(take(), equals: [3, 4, 5])
    try table.spare(2, to: 4, of: tag(9))
    try expect(table.find(queueRow(4).item)?.retryGroup, equals: 2)
  }

  @Test func leasesAreListedByHolderWithTheLatestEnd() throws {
    try table.fill(4)
    _ = try take(1, holder: [1], until: 30)
    _ = try take(1, holder: [1], until: 20)
    _ = try take(1, holder: [2], until: 40)
    let leases = try table.leases()
    expect(leases.map { $0.holder }, equals: [[1], [2]])
    expect(leases.map { $0.until }, equals: [30, 40])
  }

  @Test func anItemWhoseLeaseNamesNoHolderIsReclaimed() throws {
    // Given: a row that only a damaged file can hold, sending without a holder.
    try table.fill(1)
    try table.database.execute("UPDATE queue SET state = 1, lease = NULL, lease_ms = 0")
    let lease = try #require(try table.leases().first)
    // When: the holder that the list gives is reclaimed.
    try table.reclaim(from: lease.holder)
    // Then: the item is pending, so no caller finds the lease again and again.
    try expect(table.leases().isEmpty)
    try expect(table.state(0), equals: .pending)
  }

  @Test func aFailureInsideATransactionGivesTheBatchBack() throws {
    try table.fill(2)
    #expect(throws: Failure.self) {
      try table.database.transaction { () throws(Failure) in
        _ = try table.take(
          of: tag(1), holder: [1], until: 9, maximumSize: 99
        ) { _ in 2 }
        throw Failure(.internalDefect, "on purpose")
      }
    }
    try expect(table.counts(of: tag(1)).pending, equals: 2)
    try expect(table.leases().isEmpty)
  }
}
