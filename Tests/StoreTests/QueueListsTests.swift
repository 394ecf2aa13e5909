import Base
import TestSupport
import Testing

@testable import Store

@Suite struct QueueListsTests {
  let folder: TemporaryFolder
  let table: QueueTable

  init() throws {
    folder = try TemporaryFolder()
    table = QueueTable(try folder.open())
  }

  @Test(arguments: [0, 1, 499, 500, 501, 1000])
  func eachRowCrossesTheLimitsOfPages(count: Int) throws {
    try table.database.transaction { () throws(Failure) in try table.fill(count) }
    var found: [Int64] = []
    try table.eachRow(of: tag(1), state: nil) { (row) throws(Failure) in
      found.append(row.sequence)
    }
    expect(found, equals: (0..<count).map { Int64($0 + 1) })
  }

  @Test func eachRowReadsOneStateAndItsBodyMayUseTheTable() throws {
    try table.fill(4)
    for sequence in [2, 4] { try table.transition(Int64(sequence), .parked) }
    var found: [Int64] = []
    try table.eachRow(of: tag(1), state: .parked) { (row) throws(Failure) in
      found.append(row.sequence)
      try table.remove(row.item)
    }
    expect(found, equals: [2, 4])
    try expect(table.counts(of: tag(1)).total, equals: 2)
  }

  @Test func countsAreByStateAndOwner() throws {
    try table.fill(7)
    _ = try table.insert(queueRow(9, owner: 2))
    _ = try table.take(of: tag(1), holder: [1], until: 9, maximumSize: 99) { _ in 1 }
    for sequence in 2...3 { try table.transition(Int64(sequence), .waiting(.kind)) }
    for sequence in 4...6 { try table.transition(Int64(sequence), .parked) }
    let counts = try table.counts(of: tag(1))
    expect((counts.pending, counts.sending, counts.waiting, counts.parked) == (1, 1, 2, 3))
    expect(counts.total, equals: 7)
    try expect(table.counts(of: tag(3)).total, equals: 0)
    try expect(table.countOfOthers(than: tag(1)), equals: 1)
    try expect(table.countOfOthers(than: tag(2)), equals: 7)
    try expect(table.countOfOthers(than: nil), equals: 8)
  }

  @Test func waitingItemsAreCountedByReasonWithTheEarliestTime() throws {
    try table.fill(6)
    try expect(table.waitCounts(of: tag(1)).isEmpty)
    try table.transition(1, .waiting(.dependency))
    try table.transition(2, .waiting(.time(Pause(since: 0, until: 70))))
    try table.transition(3, .waiting(.time(Pause(since: 0, until: 60))))
    try table.transition(4, .waiting(.organisation))
    try table.transition(5, .waiting(.kind))
    let counts = try table.waitCounts(of: tag(1))
    expect(
      counts.map { $0.reason },
      equals: [.dependency, .time(Pause(since: 0, until: 60)), .organisation, .kind])
    expect(counts.map { $0.count }, equals: [1, 2, 1, 1])
  }

  @Test(
    arguments: [
      (Change(.pending), false), (Change(.pending, charged: true), true),
      (Change(.waiting(.dependency), charged: true), false),
      (Change(.waiting(.organisation), charged: true), true),
      (Change(.waiting(.organisation), history: .refused(since: 1)), false),
      (Change(.waiting(.time(Pause(since: 0, until: 1))), charged: true), true),
      (Change(.parked), false),
    ] as [(Change, Bool)])
  func anItemMayBeStoredAfterAnAttemptWithoutAResult(_ change: Change, _ isUncertain: Bool)
    throws
  {
    try table.fill(1)
    try table.transition(1, change)
    try expect(table.mayBeStored(org: tag(7), of: tag(1)), equals: isUncertain)
    try expect(!table.mayBeStored(org: tag(6), of: tag(1)))
    try expect(!table.mayBeStored(org: tag(7), of: tag(2)))
  }
}
