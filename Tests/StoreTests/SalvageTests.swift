import Base
import Foundation
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
    #expect(try found(folder.path + "/crashed.db") == bodies)
  }

  @Test func withoutItsFirstPageEveryRowIsFound() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    var data = try Data(contentsOf: URL(fileURLWithPath: path))
    data.replaceSubrange(0..<4096, with: Data(count: 4096))
    try data.write(to: URL(fileURLWithPath: path))
    #expect(try found(path) == bodies)
  }

  @Test func aDamagedPageCostsTheRowsOnItAlone() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    let pages = data.count / 4096
    var fewest = bodies.count
    for page in stride(from: 1, to: pages, by: 3) {
      var hit = data
      hit.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Data(repeating: 0xA5, count: 4096))
      try hit.write(to: URL(fileURLWithPath: path))
      let rows = try found(path)
      // A row with a damaged overflow page has a wrong body; its seal does not open then.
      let whole = rows.filter { bodies[$0.key] == $0.value }
      fewest = min(fewest, whole.count)
      #expect(whole.count >= bodies.count - 20)
    }
    #expect(fewest < bodies.count)
  }

  @Test func aTruncatedFileGivesWhatIsLeft() throws {
    let folder = try TemporaryFolder()
    let bodies = try made(folder, checkpoint: true)
    let path = folder.path + "/crashed.db"
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    try data.prefix(data.count / 2 + 100).write(to: URL(fileURLWithPath: path))
    let rows = try found(path)
    #expect(rows.count > 20)
    #expect(rows.count < bodies.count)
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
      #expect(try found(path).isEmpty)
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
    #expect(try unreadable() == 0)
    var data = try Data(contentsOf: URL(fileURLWithPath: path))
    // A leaf page with more cells than it has room for, and a page that is cut off.
    data.replaceSubrange(4096..<8192, with: Data([13, 0, 0, 0xFF, 0xFF]) + Data(count: 4091))
    try data.dropLast(10).write(to: URL(fileURLWithPath: path))
    #expect(try unreadable() == 2)
  }

  /// A queue row's record, by column position.
  private func record(_ change: (inout [Value]) -> Void = { _ in }) -> Salvage.Record {
    var columns: [Value] = [
      .null, .blob(tag(1)), .blob(tag(2)), .blob(tag(3)), .blob(tag(4)), .int(0), .int(0), .int(5),
      .int(6), .int(7), .int(8), .int(9), .int(10), .null, .int(0), .blob([11]), .null,
    ]
    change(&columns)
    return Salvage.Record(rowID: 3, columns: columns)
  }

  @Test func aQueueRowIsReadByTheColumnsPositions() throws {
    let row = try #require(QueueRow(record()))
    #expect((row.item, row.owner, row.org, row.batchKey) == (tag(1), tag(2), tag(3), tag(4)))
    #expect((row.attempts, row.denials, row.createdMS, row.size) == (6, 7, 9, 10))
    #expect(row.body == [11])
    #expect(row.state == .pending)
    #expect(row.rejection == nil)
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
    #expect(row?.state == expected)
  }

  @Test func whatWasBeingSentHasHadAnAttempt() throws {
    let row = try #require(QueueRow(record { $0[5] = .int(1) }))
    #expect((row.state, row.attempts, row.denials) == (.pending, 7, 7))
  }

  @Test(arguments: [5, 6, 8, 9, 10, 11, 12])
  func aNumberThatIsNoneDoesNotCostTheItem(column: Int) {
    #expect(QueueRow(record { $0[column] = .text("x") })?.body == [11])
  }

  @Test(arguments: [1, 2, 3, 4, 15])
  func aRecordOfAnotherFormIsNoQueueRow(column: Int) {
    #expect(QueueRow(record { $0[column] = .text("x") }) == nil)
    #expect(QueueRow(record { $0.remove(at: column) }) == nil)
  }

  @Test func aTagOfAnotherLengthIsNoQueueRow() {
    for column in 1...4 {
      #expect(QueueRow(record { $0[column] = .blob([UInt8](repeating: 1, count: 15)) }) == nil)
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
    row.locked = true
    row.backgroundBoot = "boot"
    row.seenWallMS = 1 << 40
    #expect(try SessionTable(database).write(row, expecting: 0))
    try database.flush()
    var found: [SessionRow] = []
    try Salvage(path: database.path).each { (record) throws(Failure) in
      if let row = SessionRow(record) { found.append(row) }
    }
    func dump(_ row: SessionRow?) -> [String] {
      row.map { Mirror(reflecting: $0).children.map { "\($0.label ?? ""): \($0.value)" } } ?? []
    }
    #expect(found.count == 1)
    #expect(dump(found.first) == dump(row))
  }

  @Test func aSessionWithoutAnOwnerIsNotSalvaged() throws {
    let folder = try TemporaryFolder()
    let database = try folder.open()
    try database.flush()
    try Salvage(path: database.path).each { (record) throws(Failure) in
      #expect(SessionRow(record) == nil)
    }
  }

  @Test func aMissingFileGivesNothing() throws {
    let folder = try TemporaryFolder()
    #expect(try found(folder.path + "/none.db").isEmpty)
  }
}
