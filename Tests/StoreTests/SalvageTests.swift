import Base
import CSQLite
import Foundation
import TestSupport
import Testing

@testable import Store

/// QUE-16: when a page is damaged, the rows on the other pages are found.
@Suite struct SalvageTests {
  /// A file with 300 rows, some with overflow pages; checkpointed, or with the rows in the log.
  private func made(_ folder: TemporaryFolder, checkpoint: Bool) throws -> [[UInt8]: [UInt8]] {
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
    if checkpoint { try database.execute("PRAGMA wal_checkpoint(TRUNCATE)") }
    // Copy the open file, as after a crash: closing it would empty the log.
    for suffix in ["", "-wal"] {
      try? FileManager.default.copyItem(
        atPath: database.path + suffix, toPath: folder.path + "/crashed.db" + suffix)
    }
    return bodies
  }

  private func found(_ path: String) throws -> [[UInt8]: [UInt8]] {
    var rows: [[UInt8]: [UInt8]] = [:]
    try Salvage(path: path).each { (record) throws(Failure) in
      if let row = QueueRow(record) { rows[row.item] = row.body }
    }
    return rows
  }

  @Test(arguments: [true, false]) func everyRowOfAWholeFileIsFound(checkpoint: Bool) throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: checkpoint)
    try expect(found(folder.path + "/crashed.db"), equals: bodies)
  }

  @Test func withoutItsFirstPageEveryRowIsFound() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    var data = try Data(contentsOf: URL(fileURLWithPath: path))
    data.replaceSubrange(0..<4096, with: Data(count: 4096))
    try data.write(to: URL(fileURLWithPath: path))
    try expect(found(path), equals: bodies)
  }

  @Test func aDamagedPageCostsTheRowsOnItAlone() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    let pages = data.count / 4096
    var fewest = bodies.count
    for page in stride(from: 1, to: pages, by: sized(41, full: 3)) {
      var hit = data
      hit.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Data(repeating: 0xA5, count: 4096))
      try hit.write(to: URL(fileURLWithPath: path))
      let rows = try found(path)
      // A row with a damaged overflow page has a wrong body; its seal does not open then.
      let whole = rows.filter { bodies[$0.key] == $0.value }
      fewest = min(fewest, whole.count)
      expect(whole.count >= bodies.count - 20)
    }
    expect(fewest < bodies.count)
  }

  @Test func aTruncatedFileGivesWhatIsLeft() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    try data.prefix(data.count / 2 + 100).write(to: URL(fileURLWithPath: path))
    let rows = try found(path)
    expect(rows.count > 20)
    expect(rows.count < bodies.count)
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
      try expect(found(path).isEmpty)
    }
  }

  @Test func unreadablePagesAreCountedAnewByEachRun() throws {
    let folder = try TemporaryFolder()
    _ = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    func unreadable() throws -> Int64 {
      let salvage = Salvage(path: path)
      for _ in 0..<2 { try salvage.each { (_) throws(Failure) in } }
      return salvage.unreadablePages
    }
    try expect(unreadable(), equals: 0)
    var data = try Data(contentsOf: URL(fileURLWithPath: path))
    // A leaf page with more cells than it has room for, and a page that is cut off.
    data.replaceSubrange(4096..<8192, with: Data([13, 0, 0, 0xFF, 0xFF]) + Data(count: 4091))
    try data.dropLast(10).write(to: URL(fileURLWithPath: path))
    try expect(unreadable(), equals: 2)
  }

  /// The part of a row that is on its leaf page depends on its size, from where it does not fit on.
  @Test func rowsOfEverySizeAroundAPageAreFoundWhole() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let table = QueueTable(database)
    var bodies: [[UInt8]: [UInt8]] = [:]
    try database.transaction { () throws(Failure) in
      for size in 3_880...4_100 {
        let row = queueRow(size, body: (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        bodies[row.item] = row.body
        _ = try table.insert(row)
      }
    }
    try database.flush()
    try expect(found(database.path), equals: bodies)
  }

  @Test func rowsWithTheSmallestAndTheLargestKeysAreFound() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/keys.db"
    let keys: [Int64] = [.min, -5, -1, 0, 1 << 55, 1 << 56 - 1, 1 << 56, 1 << 62 + 77, .max]
    var connection: OpaquePointer?
    expect(sqlite3_open(path, &connection), equals: SQLITE_OK)
    expect(sqlite3_exec(connection, "CREATE TABLE t(x)", nil, nil, nil), equals: SQLITE_OK)
    for key in keys {
      let sql = "INSERT INTO t(rowid, x) VALUES (\(key), 'x')"
      expect(sqlite3_exec(connection, sql, nil, nil, nil), equals: SQLITE_OK)
    }
    sqlite3_close(connection)
    var found: [Int64] = []
    try Salvage(path: path).each { (record) throws(Failure) in
      if record.columns.count == 1, record.columns[0].text == "x" { found.append(record.rowID) }
    }
    expect(found, equals: keys)
  }

  // MARK: Pages

  /// What a salvage finds in a file whose second page has these bytes at these places.
  private func salvage(
    _ parts: [(at: Int, bytes: [UInt8])]
  ) throws -> (rows: [Int64], entries: Int, unreadable: Int64, stray: Int64) {
    let folder = try TemporaryFolder()
    var file = [UInt8](repeating: 0, count: 2 * 4096)
    for part in parts {
      file.replaceSubrange(4096 + part.at..<4096 + part.at + part.bytes.count, with: part.bytes)
    }
    let path = folder.path + "/made.db"
    try Data(file).write(to: URL(fileURLWithPath: path))
    let salvage = Salvage(path: path)
    var rows: [Int64] = []
    var entries = 0
    try salvage.each({ (record) throws(Failure) in rows.append(record.rowID) }) {
      (_) throws(Failure) in entries += 1
    }
    return (rows, entries, salvage.unreadablePages, salvage.strayPages)
  }

  /// A cell with the key 7 and one column, the number 1, or an index's entry with the same column.
  private let cell: [UInt8] = [2, 7, 2, 9]
  private let entry: [UInt8] = [2, 2, 9]

  @Test func aCellIsReadWhereItsOffsetSays() throws {
    try expect(salvage([(0, [13, 0, 0, 0, 1, 0, 0, 0, 1, 0]), (256, cell)]).rows, equals: [7])
    // up to the page's end
    try expect(salvage([(0, [13, 0, 0, 0, 1, 0, 0, 0, 15, 252]), (4092, cell)]).rows, equals: [7])
    try expect(
      salvage([(0, [10, 0, 0, 0, 1, 0, 0, 0, 15, 253]), (4093, entry)]).entries, equals: 1)
  }

  @Test(
    "A cell that leaves the page is skipped, and the others are read",
    arguments: [
      (4095, [0x80]),  // a number that does not end
      (4094, [0x80, 0x80]), (4096, []), (65_535, []),
      (4093, [2, 7, 2]),  // a payload
      // A payload of 5,000 bytes, of which 908 are here; the next page's number follows them.
      (3185, [0xA7, 0x08, 7]),
      (4000, [0xA7, 0x08, 7]), (4090, [0xBF, 0xFF, 0xFF, 0x7F, 7]),
    ] as [(Int, [UInt8])])
  func cellsAtTheEnd(offset: Int, bytes: [UInt8]) throws {
    let offsets = [UInt8(offset >> 8), UInt8(offset & 255), 1, 0]
    let parts = [(8, offsets), (256, cell), (min(offset, 4095), Array(bytes))]
    try expect(salvage([(0, [13, 0, 0, 0, 2])] + parts).rows, equals: [7])
    let entries = [(8, offsets), (256, entry), (min(offset, 4095), Array(bytes))]
    try expect(salvage([(0, [10, 0, 0, 0, 2])] + entries).entries, equals: 1)
  }

  /// 2,044 offsets of two bytes and a header of eight are a page.
  @Test func aListOfCellsEndsWithThePage() throws {
    try expect(salvage([(0, [13, 0, 0, 0x07, 0xFC])]).unreadable, equals: 0)
    try expect(salvage([(0, [13, 0, 0, 0x07, 0xFD])]).unreadable, equals: 1)
    // Each offset is 0x0802, where an entry of eight bytes begins: 8, 2, 8, …, which holds a zero.
    let offsets = [[UInt8]](repeating: [8, 2], count: 2_044).flatMap { $0 }
    try expect(salvage([(0, [10, 0, 0, 0x07, 0xFC]), (8, offsets)]).entries, equals: 2_044)
    try expect(salvage([(0, [10, 0, 0, 0x07, 0xFD]), (8, offsets)]).entries, equals: 0)
  }

  @Test func aPageThatIsNothingKnownIsStray() throws {
    for bytes in [[13], [10], [2], [5], []] as [[UInt8]] {
      try expect(salvage([(0, bytes)]).stray, equals: 0, "\(bytes)")
    }
    try expect(salvage([(0, [1])]).stray, equals: 1)
    // A trunk of the free list: the next trunk, how many leaves, the leaves, zeroes.
    try expect(salvage([(3, [1]), (7, [2]), (11, [2]), (15, [1])]).stray, equals: 0)
    try expect(salvage([(3, [3])]).stray, equals: 1, "a trunk that the file does not have")
    try expect(
      salvage([(7, [2]), (11, [3])]).stray, equals: 1, "a leaf that the file does not have")
    try expect(salvage([(7, [2]), (16, [1])]).stray, equals: 1, "more leaves than it says")
    // 1,022 leaves fill a page.
    try expect(salvage([(6, [3, 0xFE])]).stray, equals: 0)
    try expect(salvage([(6, [3, 0xFF])]).stray, equals: 1)
    try expect(salvage([(4, [0xFF, 0xFF, 0xFF, 0xFF])]).stray, equals: 1)
  }

  /// Overflow pages and the free list are known; each page of rows that is lost is not.
  @Test func ofAWholeFileNoPageIsStray() throws {
    let folder = try TemporaryFolder()
    _ = try made(folder, checkpoint: true)
    let database = try Database(path: folder.path + "/crashed.db", .full)
    // Every second row and its pages: some trees and chains remain.
    try database.execute("DELETE FROM queue WHERE seq % 2 = 0 OR seq BETWEEN 40 AND 200")
    let free = try database.first("PRAGMA freelist_count") { (row) throws(Failure) in row.int(0) }
    expect(free ?? 0 > 20)
    try database.flush()
    let path = folder.path + "/copy.db"
    let data = try Data(contentsOf: URL(fileURLWithPath: database.path))
    try data.write(to: URL(fileURLWithPath: path))
    let salvage = Salvage(path: path)
    for _ in 0..<2 {
      try salvage.each { (_) throws(Failure) in }
      expect((salvage.strayPages, salvage.unreadablePages) == (0, 0))
    }
    let leaves = (1..<data.count / 4096).filter { data[$0 * 4096] == 13 }
    expect(leaves.count > 3)
    var hit = data
    for leaf in leaves.prefix(3) {
      hit.replaceSubrange(leaf * 4096..<(leaf + 1) * 4096, with: Data(repeating: 0xA5, count: 4096))
    }
    try hit.write(to: URL(fileURLWithPath: path))
    try salvage.each { (_) throws(Failure) in }
    expect(salvage.strayPages >= 3)
  }

  // MARK: Rows

  /// A queue row's record, by column position.
  private func record(_ change: (inout [Value]) -> Void = { _ in }) -> Salvage.Record {
    var columns: [Value] = [
      .null, .blob(tag(1)), .blob(tag(2)), .blob(tag(3)), .blob(tag(4)), .int(0), .int(0), .int(5),
      .int(6), .int(7), .int(12), .int(8), .int(9), .int(10), .null, .int(0), .blob([11]), .null,
    ]
    change(&columns)
    return Salvage.Record(rowID: 3, columns: columns)
  }

  @Test func aQueueRowIsReadByTheColumnsPositions() throws {
    let row = try #require(QueueRow(record()))
    expect((row.item, row.owner, row.org, row.batchKey) == (tag(1), tag(2), tag(3), tag(4)))
    expect((row.attempts, row.denials, row.createdMS, row.size) == (6, 7, 9, 10))
    expect((row.blocks, row.body) == (12, [11]))
    expect(row.state, equals: .pending)
    expect(row.rejection, equals: nil)
  }

  @Test(
    arguments: [
      (0, 0, .pending), (1, 0, .pending), (2, 0, .pending), (2, 1, .waiting(.dependency)),
      (2, 2, .waiting(.time(until: 8))), (2, 3, .waiting(.organisation)), (2, 4, .waiting(.kind)),
      (3, 0, .parked),
      // A state that makes no sense does not cost the item.
      (4, 0, .pending), (-1, 0, .pending), (2, 5, .waiting(.server(until: 8))),
      (2, 6, .waiting(.blocked(until: 8))), (2, 7, .pending),
      (2, -1, .pending),
    ] as [(Int64, Int64, ItemState)])
  func aSalvagedItemIsNotBeingSent(state: Int64, reason: Int64, expected: ItemState) {
    let row = QueueRow(
      record {
        $0[5] = .int(state)
        $0[6] = .int(reason)
      })
    expect(row?.state, equals: expected)
  }

  @Test func whatWasBeingSentHasHadAnAttempt() throws {
    let row = try #require(QueueRow(record { $0[5] = .int(1) }))
    expect((row.state, row.attempts, row.denials) == (.pending, 7, 7))
  }

  @Test(arguments: [5, 6, 8, 9, 10, 11, 12, 13])
  func aNumberThatIsNoneDoesNotCostTheItem(column: Int) {
    expect(QueueRow(record { $0[column] = .text("x") })?.body, equals: [11])
  }

  @Test(arguments: [1, 2, 3, 4, 16])
  func aRecordOfAnotherFormIsNoQueueRow(column: Int) {
    expect(QueueRow(record { $0[column] = .text("x") }) == nil)
    expect(QueueRow(record { $0.remove(at: column) }) == nil)
  }

  @Test func aTagOfAnotherLengthIsNoQueueRow() {
    for column in 1...4 {
      expect(QueueRow(record { $0[column] = .blob([UInt8](repeating: 1, count: 15)) }) == nil)
    }
  }

  @Test func theSessionRowIsFoundWithAllItsColumns() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    let row = SessionRow()
    row.generation = 4
    row.owner = tag(1)
    row.tokens = [2]
    row.wrapSession = [3]
    row.wrapBiometric = [5]
    row.choice = [6]
    row.memberships = [7]
    row.cacheKey = [8]
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
    var found: [SessionRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = SessionRow(record) { found.append(row) }
    }
    func dump(_ row: SessionRow?) -> [String] {
      row.map { Mirror(reflecting: $0).children.map { "\($0.label ?? ""): \($0.value)" } } ?? []
    }
    expect(found.count, equals: 1)
    expect(dump(found.first), equals: dump(row))
  }

  @Test func aSessionWithoutAnOwnerIsNotSalvaged() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    try database.flush()
    try Salvage(path: database.path).each { (record) throws(Failure) in
      expect(SessionRow(record) == nil)
    }
  }

  @Test func aMissingFileGivesNothing() throws {
    let folder = try TemporaryFolder()
    try expect(found(folder.path + "/none.db").isEmpty)
  }
}
