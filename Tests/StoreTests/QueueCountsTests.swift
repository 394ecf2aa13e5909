import Base
import TestSupport
import Testing

@testable import Store

@Suite struct QueueCountsTests {
  let folder: TemporaryFolder
  let database: Database
  let table: QueueTable

  init() throws {
    folder = try TemporaryFolder()
    database = try folder.open()
    table = QueueTable(database)
  }

  private typealias Counted = [String: Int64]

  /// What the table holds of an owner, and what is kept of it.
  private func counted(_ sql: StaticCString) throws -> Counted {
    var found: Counted = [:]
    try database.each(sql, []) { (row) throws(Failure) in
      found["\(row.blob(0)[0]) \(row.int(1)) \(row.int(2))"] = row.int(3)
      return true
    }
    return found
  }

  private var isExact: Bool {
    get throws {
      let rows = try counted(
        "SELECT owner, state, wait_reason, count(*) FROM queue GROUP BY owner, state, wait_reason")
      let kept = try counted(
        "SELECT owner, state, wait_reason, items FROM queue_count WHERE items <> 0")
      return rows == kept
    }
  }

  /// One random change of the queue, as its users make them.
  private func change(_ random: inout Seeded, _ number: Int) throws {
    let owner = UInt8(1 + random.below(2))
    let sequence = Int64(random.below(number + 1))
    let item = queueRow(random.below(number + 1)).item
    switch random.below(20) {
    case 0...5:
      let row = queueRow(number, owner: owner)
      row.org = tag(UInt8(7 + random.below(2)))
      row.batchKey = tag(UInt8(8 + random.below(2)))
      if random.below(4) == 0 { row.state = .waiting(.dependency) }
      _ = try table.insert(row)
      if row.state == .waiting(.dependency) {
        try DependencyTable(database).add(row.item, on: item)
      }
    case 6, 7:
      _ = try table.take(
        of: tag(owner), holder: [UInt8(random.below(2))], until: 9, maximumSize: 99
      ) { _ in 1 + random.below(5) }
    case 8: try table.transition(sequence, .pending, retryGroup: RetryGroup(Int64(random.below(3))))
    case 9: try table.transition(sequence, .parked)
    case 10:
      let until = SteadyTime(ms: Int64(random.below(100)))
      let reasons: [WaitReason] = [
        .dependency, .time(Pause(since: 0, until: until)), .organisation, .kind,
        .server(Pause(since: 0, until: until)),
        .blocked(Pause(since: 0, until: until)),
      ]
      try table.transition(sequence, .waiting(reasons[random.below(reasons.count)]))
    case 11: try table.removeStored([item, queueRow(random.below(number + 1)).item])
    case 12: try table.remove(item)
    case 13: _ = try table.retry(random.below(2) == 0 ? nil : item, of: tag(owner))
    case 14:
      guard let row = try table.find(item) else { return }
      (row.batchKey, row.body, row.size) = (tag(8), [4], 1)
      if random.below(2) == 0 { row.beginAnew() }
      try table.write(row)
    case 15: try table.pause(like: sequence, of: tag(owner), .time(Pause(since: 0, until: 50)))
    case 16:
      let now = SteadyTime(ms: Int64(random.below(100)))
      try table.promote(of: tag(owner), now: now)
    case 17: try table.withhold(org: tag(UInt8(7 + random.below(2))), of: tag(owner))
    case 18:
      try table.release(org: random.below(2) == 0 ? nil : tag(7), of: tag(owner))
      try table.releaseKind(batchKey: tag(8), of: tag(owner))
      if random.below(3) == 0 { try table.endOwnPauses(of: tag(owner)) }
    default:
      if random.below(10) == 0 { return try table.removeAll(of: tag(owner)) }
      try table.reclaim(from: [UInt8(random.below(2))])
    }
  }

  @Test(arguments: 1...sized(10, full: 40))
  func theCountsAreThoseOfAScanAfterAnyChanges(seed: UInt64) throws {
    var random = Seeded(seed)
    try database.transaction { () throws(Failure) in
      for number in 0..<200 {
        do { try change(&random, number) } catch let error as Failure { throw error } catch {}
      }
    }
    try expect(isExact)
    for number in 200..<240 {
      try change(&random, number)
      try expect(isExact, "after change \(number)")
    }
    for owner in [tag(1), tag(2)] {
      let counts = try table.counts(of: owner)
      var found = 0
      try table.eachRow(of: owner, state: nil) { (_) throws(Failure) in found += 1 }
      expect(counts.total, equals: Int64(found))
      try expect(
        table.waitCounts(of: owner).reduce(0) { $0 + $1.count }, equals: counts.waiting)
    }
    try expect(
      table.countOfOthers(than: nil),
      equals: table.counts(of: tag(1)).total + table.counts(of: tag(2)).total)
  }

  @Test(arguments: 1...sized(5, full: 20))
  func aPageIsThatOfTheTableForAnyOwnerAndState(seed: UInt64) throws {
    var random = Seeded(seed)
    for number in 0..<150 { try change(&random, number) }
    for state in [ItemState.Code.pending, .sending, .waiting, .parked, nil] {
      for after in [0, 20, 100] {
        let expected = try database.all(
          """
          SELECT seq FROM queue NOT INDEXED WHERE owner = ?1 AND (?2 IS NULL OR state = ?2) AND seq > ?3
          ORDER BY seq LIMIT 7
          """, .blob(tag(1)), Value(state?.rawValue), .int(after)
        ) { (row) throws(Failure) in row.int(0) }
        let page = try table.page(of: tag(1), state: state, after: Int64(after), limit: 7)
        expect(page.map { $0.sequence }, equals: expected)
      }
    }
  }

  /// A sum is of what is not parked. It goes when an item of it counts for something else.
  @Test(arguments: ["park", "retry", "write", "remove", "wait"])
  func theSumsWithAnItemGoWhenItCountsForSomethingElse(_ change: String) throws {
    // Given a kept sum on each level with the first item, and one with the last item alone
    try table.fill(65)
    if change == "retry" { try table.transition(1, .parked) }
    let blocks = QueueBlockTable(database)
    for (level, block) in [(0, 0), (1, 0), (2, 0), (3, 0), (0, 1)] as [(Int64, Int64)] {
      try blocks.write(level, block, of: tag(1), org: tag(7), [1])
    }
    // When
    switch change {
    case "park": try table.transition(1, .parked)
    case "retry": _ = try table.retry(nil, of: tag(1))
    case "write":
      let row = try #require(try table.find(queueRow(0).item))
      row.body = [9]
      try table.write(row)
    case "remove": try table.remove(queueRow(0).item)
    default: try table.transition(1, .waiting(.kind))
    }
    // Then
    let left = try database.all("SELECT level, block FROM queue_block ORDER BY level, block") {
      (row) throws(Failure) in "\(row.int(0)) \(row.int(1))"
    }
    expect(left, equals: change == "wait" ? ["0 0", "0 1", "1 0", "2 0", "3 0"] : ["0 1"])
  }

  // MARK: Kept counts that cannot be right

  @Test(arguments: [
    "DELETE FROM queue_count", "UPDATE queue_count SET items = -1",
    "UPDATE queue_count SET items = 9223372036854775807", "UPDATE queue_count SET items = 1.5",
    "UPDATE queue_count SET items = 'x'", "UPDATE queue_count SET items = x'00'",
    "UPDATE queue_count SET items = 0", "UPDATE queue_count SET state = state + 1",
    "UPDATE queue_count SET owner = CAST(x'00' || owner AS BLOB)",
  ])
  func countsThatCannotBeRightAreMadeAnew(_ damage: String) throws {
    try table.fill(3)
    _ = try table.insert(queueRow(9, owner: 2))
    try database.execute(damage)
    let counts = try table.counts(of: tag(1))
    expect((counts.pending, counts.total) == (3, 3))
    try expect(table.countOfOthers(than: tag(1)), equals: 1)
    try expect(table.countOfOthers(than: nil), equals: 4)
    try expect(isExact)
  }

  @Test func aReaderCountsAnewWhereMoreItemsWentThanWereCounted() throws {
    try table.fill(5)
    try database.execute("UPDATE queue_count SET items = 2")
    _ = try table.take(of: tag(1), holder: [1], until: 9, maximumSize: 99) { _ in 3 }
    let counts = try table.counts(of: tag(1))
    expect((counts.pending, counts.sending) == (2, 3))
    try expect(isExact)
  }

  @Test func aReaderInATransactionScansAndWritesNothing() throws {
    try table.fill(2)
    try database.execute("DELETE FROM queue_count")
    try database.transaction { () throws(Failure) in
      let changes = database.changes
      try expect(table.counts(of: tag(1)).pending, equals: 2)
      expect(database.changes, equals: changes)
    }
  }

  @Test func aFileThatWasCheckedWholeIsCounted() throws {
    try table.fill(5)
    try table.checkCounts()
    try expect(isExact)
    try database.execute("UPDATE queue_count SET items = 4")
    try table.checkCounts()
    try expect(isExact)
  }
}
