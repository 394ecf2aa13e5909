import Base
import Foundation
import Testing

@testable import Store

/// QUE-16: whatever page is hit, the rows on the others are found.
@Suite struct SalvageTests {
  /// 300 rows, some of which overflow onto further pages; checkpointed or still in the log.
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
    // As a crash leaves it: closing would empty the log.
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
      // A row whose overflow was hit comes back with a wrong body; its seal tells (Engine).
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
      // Leaf pages by their type, noise in all the rest.
      for page in 0..<3 { bytes[page * 4096] = round % 2 == 0 ? 13 : bytes[page * 4096] }
      let path = folder.path + "/noise.db"
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      #expect(try found(path).isEmpty)
    }
  }

  @Test func aMissingFileGivesNothing() throws {
    let folder = try TemporaryFolder()
    #expect(try found(folder.path + "/none.db").isEmpty)
  }
}
