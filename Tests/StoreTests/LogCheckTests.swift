import Base
import Foundation
import Testing

@testable import Store

/// A log is mended where one bit of a frame has flipped, and is not taken for a torn one.
@Suite struct LogCheckTests {
  let folder: TemporaryFolder
  var path: String { folder.path + "/crashed.db" }
  var log: URL { URL(fileURLWithPath: path + "-wal") }

  /// Ten transactions in a log, as after a crash.
  init() throws {
    folder = try TemporaryFolder()
    let database = try folder.open()
    try database.flush()
    for number in 0..<10 { _ = try QueueTable(database).insert(queueRow(number)) }
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(
        atPath: database.path + suffix, toPath: folder.path + "/crashed.db" + suffix)
    }
  }

  private func items() throws -> Int64 {
    try QueueTable(folder.open("crashed.db")).counts(of: tag(1)).total
  }

  @Test func aWholeLogIsNotTouched() throws {
    let before = try Data(contentsOf: log)
    #expect(LogCheck.mend(path + "-wal") == .whole)
    #expect(try Data(contentsOf: log) == before)
    #expect(try items() == 10)
  }

  @Test(arguments: 0..<60)
  func aFlippedBitIsTurnedBack(round: Int) throws {
    let before = try Data(contentsOf: log)
    var hit = before
    // The header, a frame's header, and pages.
    let at = round < 32 ? round : round < 56 ? round : 56 + (before.count - 57) * (round - 55) / 5
    hit[at] ^= 1 << UInt8(round % 8)
    try hit.write(to: log)
    #expect(LogCheck.mend(path + "-wal") == .whole)
    #expect(try items() == 10)
  }

  @Test func severalFlippedBitsOfAFrameAreDamage() throws {
    var hit = try Data(contentsOf: log)
    for at in [1000, 1500, 2000] { hit[at] ^= 4 }
    try hit.write(to: log)
    #expect(LogCheck.mend(path + "-wal") == .damaged)
    #expect(Database.logCondition(path) == .damaged)
  }

  @Test func aTornTransactionAtTheEndIsNoDamage() throws {
    let data = try Data(contentsOf: log)
    var torn = data
    torn.replaceSubrange(data.count - 2000..<data.count, with: Data(count: 2000))
    for cut in [data.dropLast(500), data.dropLast(4100), torn] {
      try cut.write(to: log)
      #expect(LogCheck.mend(path + "-wal") != .damaged)
    }
    #expect(LogCheck.mend(path + "-wal") == .endsTorn)
  }

  @Test func aMissingOrEmptyLogIsWhole() throws {
    #expect(LogCheck.mend(folder.path + "/none") == .whole)
    try Data().write(to: log)
    #expect(LogCheck.mend(path + "-wal") == .whole)
    try Data(count: 9000).write(to: log)
    #expect(LogCheck.mend(path + "-wal") == .whole)
  }
}
