import Base
import CSQLite
import Foundation
import TestSupport
import Testing
import Vault

@testable import Store

/// QUE-16: when a page is damaged, the rows on the other pages are found.
@Suite struct SalvageTests {
  /// A file with 300 rows, some with overflow pages.
  private func made(_ folder: TemporaryFolder) throws -> [[UInt8]: [UInt8]] {
    let database = try folder.open()
    let table = QueueTable(database)
    var bodies: [[UInt8]: [UInt8]] = [:]
    try database.transaction { () throws(Failure) in
      for number in 0..<300 {
        let size = number % 50 == 0 ? 20_000 : 200 + number
        let row = queueRow(
          number, body: (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) })
        bodies[row.item] = row.body
        _ = try table.insert(row)
      }
    }
    try database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    // Copy the open file, as after a crash.
    try FileManager.default.copyItem(atPath: database.path, toPath: folder.path + "/crashed.db")
    return bodies
  }

  private func found(
    _ path: String
  ) throws -> (rows: [[UInt8]: [UInt8]], isWhole: Bool) {
    let salvage = try Salvage.open(path)
    var rows: [[UInt8]: [UInt8]] = [:]
    try salvage.eachItem { (row) throws(Failure) in rows[row.item] = row.body }
    return (rows, salvage.isWhole)
  }

  @Test func withoutItsFirstPageEveryRowIsFound() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder)
    let path = folder.path + "/crashed.db"
    var data = try Data(contentsOf: URL(fileURLWithPath: path))
    data.replaceSubrange(0..<4096, with: Data(count: 4096))
    try data.write(to: URL(fileURLWithPath: path))
    let found = try found(path)
    expect(found.rows, equals: bodies)
    expect(found.isWhole)
    // The file stays as it is, and the copy is gone.
    try expect(Data(contentsOf: URL(fileURLWithPath: path)) == data)
    try expect(
      FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
        $0.contains("scratch")
      }.isEmpty)
  }

  /// The numbers of the pages of this kind.
  private func pages(_ data: Data, kind: UInt8) -> [Int] {
    (1..<data.count / 4096).filter { data[$0 * 4096] == kind }
  }

  @Test func rowsThatALeafNoLongerListsAreMissed() throws {
    // Given leaves whose lists of rows have lost their ends, so that they look sound
    let folder = try TemporaryFolder()
    let bodies = try made(folder)
    let path = folder.path + "/crashed.db"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    var tried = 0
    let other = try TemporaryFolder()
    let first = try other.open().first("PRAGMA page_count") { (row) throws(Failure) in row.int(0) }
    // Behind the pages of a new file there are only items.
    for page in pages(data, kind: 13) where page > first ?? 0 && data[page * 4096 + 4] > 3 {
      var hit = data
      hit[page * 4096 + 4] -= 2
      try hit.write(to: URL(fileURLWithPath: path))
      // Then the index names the items that are gone
      let salvage = try Salvage.open(path)
      var (rows, names) = (Set<[UInt8]>(), Set<[UInt8]>())
      try salvage.eachItem { (row) throws(Failure) in rows.insert(row.item) }
      try salvage.eachName { (item) throws(Failure) in names.insert(item) }
      expect(rows.count == bodies.count - 2, "page \(page): \(rows.count)")
      expect(names.count == bodies.count && rows.isSubset(of: names))
      tried += 1
    }
    expect(tried > 5)
  }

  @Test func noiseGivesNothingAndDoesNotCrash() throws {
    let folder = try TemporaryFolder()
    var state: UInt64 = 42
    for round in 0..<50 {
      var bytes = [UInt8](repeating: 0, count: 4096 * 3)
      for index in bytes.indices {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        bytes[index] = UInt8(truncatingIfNeeded: state >> 33)
      }
      // In every second round the pages begin as leaf pages.
      for page in 0..<3 { bytes[page * 4096] = round % 2 == 0 ? 13 : bytes[page * 4096] }
      let path = folder.path + "/noise.db"
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      let (rows, isWhole) = try found(path)
      expect(rows.isEmpty && !isWhole)
    }
  }

  // MARK: Rows

  /// The only item of a file in which a statement has changed it; nil: it has not an item's form.
  private func changed(_ sql: String) throws -> QueueRow? {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let row = queueRow(1)
    row.state = .waiting(.time(Pause(since: 0, until: 8)))
    row.attempts = 6
    _ = try QueueTable(database).insert(row)
    try database.flush()
    tamper(database.path, sql)
    var items: [QueueRow] = []
    let salvage = try Salvage.open(database.path)
    try salvage.eachItem { (row) throws(Failure) in items.append(row) }
    expect(items.count == 1 || !salvage.isWhole)
    return items.first
  }

  @Test(
    arguments: [
      (0, 0, .pending), (1, 0, .pending), (2, 0, .pending), (2, 1, .waiting(.dependency)),
      (2, 2, .waiting(.time(Pause(since: 0, until: 8)))), (2, 3, .waiting(.organisation)),
      (2, 4, .waiting(.kind)),
      (3, 0, .parked),
      // A state that makes no sense does not cost the item.
      (4, 0, .pending), (-1, 0, .pending), (2, 5, .waiting(.server(Pause(since: 0, until: 8)))),
      (2, 6, .waiting(.blocked(Pause(since: 0, until: 8)))), (2, 7, .pending),
      (2, -1, .pending),
    ] as [(Int64, Int64, ItemState)])
  func aSalvagedItemIsNotBeingSent(state: Int64, reason: Int64, expected: ItemState) throws {
    let row = try changed("UPDATE queue SET state = \(state), wait_reason = \(reason)")
    expect(row?.state, equals: expected)
  }

  @Test(arguments: ["state", "wait_reason", "attempts", "history", "created_ms", "size"])
  func aNumberThatIsNoneDoesNotCostTheItem(column: String) throws {
    for value in ["'x'", "x'00'", "-1", "9223372036854775807"] {
      let row = try #require(try changed("UPDATE queue SET \(column) = \(value)"))
      expect(row.body == [1, 2, 3] && row.size > 0)
    }
  }

  @Test(arguments: ["item", "owner", "org", "batch_key"])
  func aTagOfAnotherLengthIsNoQueueRow(column: String) throws {
    try expect(changed("UPDATE queue SET \(column) = zeroblob(15)") == nil)
  }

  @Test func theSessionRowIsFoundWithAllItsColumns() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let row = SessionRow()
    row.generation = 4
    row.owner = tag(1)
    try Vault.start()
    let key = try Key.random()
    func sealed(_ number: UInt8) throws -> [UInt8] {
      try [number].withUnsafeBytes { (bytes) throws(Failure) in
        try key.seal(bytes, SealContext(table: "session", column: "tokens"))
      }
    }
    row.tokens = try sealed(2)
    row.wrapSession = try sealed(3)
    row.wrapBiometric = try sealed(5)
    row.choice = try sealed(6)
    row.memberships = try sealed(7)
    row.cacheKey = try sealed(8)
    row.noteAuthentication(Instant(wallMS: 9, monotonicMS: 10, bootID: "third boot"))
    row.noteValidation(Instant(wallMS: 11, monotonicMS: 12, bootID: "other boot"), serverMS: 13)
    row.expiresMS = 14
    row.membershipsMS = 15
    row.intentMS = 16
    row.backgroundWallMS = 17
    row.backgroundMonotonicMS = 18
    row.locked = true
    row.backgroundBoot = "boot"
    row.seenWallMS = 1 << 40
    try expect(SessionTable(database).write(row, expecting: 0))
    try database.flush()
    let found = try Salvage.open(database.path).session()
    func dump(_ row: SessionRow?) -> [String] {
      row.map { Mirror(reflecting: $0).children.map { "\($0.label ?? ""): \($0.value)" } } ?? []
    }
    expect(dump(found), equals: dump(row))
    // What a lock depends on counts against the user where it cannot be read.
    tamper(database.path, "UPDATE session SET locked = 'x', seen_wall_ms = 1.5")
    let strange = try Salvage.open(database.path).session()
    expect(strange?.locked == true && strange?.seenWallMS == Row.times.upperBound)
  }

  // MARK: Single values

  @Test func aValueThatCannotBeReadIsNone() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let meta = MetaTable(database)
    try meta.set(.retryGroup, .int(7))
    try meta.setProject("https://a.example")
    try database.flush()
    let salvage = try Salvage.open(database.path)
    try expect(salvage.number(.retryGroup) == 7 && salvage.number(.deviceKey) == 0)
    try expect(salvage.project() == "https://a.example" && salvage.text(.salvage) == nil)
    for value in ["'x'", "-1", "1099511627776", "9223372036854775807"] {
      tamper(
        database.path, "UPDATE meta SET value = \(value) WHERE name = 'retry_group'")
      try expect(Salvage.open(database.path).number(.retryGroup), equals: 0)
    }
  }

  @Test func whatWasBeingSentHasHadAnAttempt() throws {
    let row = try #require(try changed("UPDATE queue SET state = 1"))
    expect((row.state, row.attempts) == (.pending, 7))
  }
}
