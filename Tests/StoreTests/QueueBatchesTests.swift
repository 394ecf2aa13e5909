import Base
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
    _ items: Int = 99, fresh: Int = .max, size: Int64 = 10_000, holder: [UInt8] = [1],
    until: SteadyTime = 50
  ) throws -> [Int64] {
    try table.take(
      of: tag(1), holder: holder, until: until, freshItems: fresh, maximumSize: size
    ) { _ in items }.map { $0.sequence }
  }

  @Test func aBatchHasOneKeyStaysWithinBothLimitsAndIsLeased() throws {
    for number in 0..<10 {
      let row = queueRow(number, body: [UInt8](repeating: 1, count: 100))
      if number == 4 { row.batchKey = tag(9) }
      _ = try table.insert(row)
    }
    #expect(try take(6, size: 450) == [1, 2, 3, 4])
    #expect(try take(6, holder: [2]) == [5])
    #expect(try take(6, holder: [2]) == [6, 7, 8, 9, 10])
    #expect(try take().isEmpty)
    #expect(try table.leased(by: [1]) == [1, 2, 3, 4])
    #expect(try table.leased(by: [2]) == [5, 6, 7, 8, 9, 10])
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
    #expect(try (0..<4).map { _ in try take() } == [[1], [2], [3, 4, 5], [6]])
  }

  @Test func batchesComeInTheOrderOfTheirOldestItems() throws {
    for number in 0..<40 {
      let row = queueRow(number)
      row.batchKey = tag([7, 2, 9, 4, 200, 1, 100, 3][number % 8])
      _ = try table.insert(row)
    }
    #expect(try (0..<8).map { _ in try take(3).first } == [1, 2, 3, 4, 5, 6, 7, 8])
    #expect(try (0..<8).map { _ in try take(3) } == (25...32).map { [$0, $0 + 8] })
    #expect(try take().isEmpty)
  }

  @Test(arguments: [(Int64(1), 1), (5, 1), (6, 2), (8, 2), (9, 3)] as [(Int64, Int)])
  func theLimitOfBytesIsInclusiveAndTheFirstItemMayExceedIt(size: Int64, count: Int) throws {
    try table.fill(3)
    #expect(try take(size: size).count == count)
  }

  @Test func anItemThatWasRefusedOnTheWayIsABatchOfItsOwn() throws {
    for number in 0..<6 {
      let row = queueRow(number)
      row.blocks = [0, 3, 0, 1, 0, 0][number]
      _ = try table.insert(row)
    }
    #expect(try take() == [1, 3, 5, 6])
    // A later item does not join it.
    _ = try table.insert(queueRow(6))
    #expect(try take() == [2])
    #expect(try take() == [4])
    #expect(try take() == [7])
    #expect(try take().isEmpty)
  }

  @Test func theLimitOfItemsIsInclusive() throws {
    try table.fill(3)
    #expect(try take(2) == [1, 2])
    #expect(try take(2) == [3])
  }

  @Test func fartherRetryGroupsComeLaterAndEachByItself() throws {
    try table.fill(6)
    for (sequence, group) in [(1, 3), (2, 3), (3, 2), (4, 2)] {
      try table.transition(Int64(sequence), .pending(retryGroup: Int64(group)))
    }
    #expect(try take() == [5, 6])
    #expect(try take() == [3, 4])
    #expect(try take() == [1, 2])
  }

  @Test func theSmallerLimitIsForItemsThatWereNotRefusedTogether() throws {
    try table.fill(9)
    for sequence in 4...6 { try table.transition(Int64(sequence), .pending(retryGroup: 1)) }
    for sequence in 7...9 { try table.transition(Int64(sequence), .pending(retryGroup: 2)) }
    #expect(try take(3, fresh: 2) == [1, 2])
    #expect(try take(3, fresh: 2) == [3])
    #expect(try take(3, fresh: 2) == [4, 5, 6])
    #expect(try take(3, fresh: 2) == [7, 8])
    #expect(try take(3, fresh: 2) == [9])
  }

  @Test func onlyPendingItemsOfTheOwnerAreTaken() throws {
    try table.fill(4)
    _ = try table.insert(queueRow(9, owner: 2))
    try table.transition(1, .parked(rejection: nil))
    try table.transition(2, .waiting(.kind))
    #expect(try take() == [3, 4])
    #expect(try table.counts(of: tag(2)).pending == 1)
  }

  @Test func leasesAreListedByHolderWithTheLatestEnd() throws {
    try table.fill(4)
    _ = try take(1, holder: [1], until: 30)
    _ = try take(1, holder: [1], until: 20)
    _ = try take(1, holder: [2], until: 40)
    let leases = try table.leases()
    #expect(leases.map { $0.holder } == [[1], [2]])
    #expect(leases.map { $0.until } == [30, 40])
  }

  @Test func aDeadHoldersItemsBecomePendingWithAnAttempt() throws {
    try table.fill(4)
    _ = try take(2, holder: [1])
    _ = try take(2, holder: [2])
    try table.reclaim(from: [1])
    #expect(try table.state(0) == .pending)
    #expect(try table.find(queueRow(0).item)?.attempts == 1)
    #expect(try table.state(2) == .sending)
    #expect(try table.find(queueRow(2).item)?.attempts == 0)
    #expect(try table.leases().map { $0.holder } == [[2]])
    #expect(try take() == [1, 2])
  }

  @Test func anItemWhoseLeaseNamesNoHolderIsReclaimed() throws {
    // Given: a row that only a damaged file can hold, sending without a holder.
    try table.fill(1)
    try table.database.execute("UPDATE queue SET state = 1, lease = NULL, lease_ms = 0")
    let lease = try #require(try table.leases().first)
    // When: the holder that the list gives is reclaimed.
    try table.reclaim(from: lease.holder)
    // Then: the item is pending, so no caller finds the lease again and again.
    #expect(try table.leases().isEmpty)
    #expect(try table.state(0) == .pending)
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
    #expect(try table.counts(of: tag(1)).pending == 2)
    #expect(try table.leases().isEmpty)
  }
}
