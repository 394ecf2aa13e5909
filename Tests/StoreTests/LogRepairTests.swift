import Base
import Foundation
import Testing

@testable import Store

/// A damaged log is written anew, so that no commit is lost that its index names.
@Suite struct LogRepairTests {
  let folder: TemporaryFolder
  var path: String { folder.path + "/crashed.db" }
  var log: URL { URL(fileURLWithPath: path + "-wal") }
  let index: LogIndex
  let before: Data
  private static let frame = 24 + 4096

  /// Ten transactions in a log, as after a crash.
  init() throws {
    folder = try TemporaryFolder()
    let database = try folder.open()
    try database.flush()
    for number in 0..<10 { _ = try QueueTable(database).insert(queueRow(number)) }
    for suffix in ["", "-wal", "-shm"] {
      try FileManager.default.copyItem(
        atPath: database.path + suffix, toPath: folder.path + "/crashed.db" + suffix)
    }
    index = try #require(LogIndex.left(of: folder.path + "/crashed.db"))
    before = try Data(contentsOf: URL(fileURLWithPath: folder.path + "/crashed.db-wal"))
  }

  private func flip(_ places: [(at: Int, bit: Int)]) throws {
    var hit = before
    for place in places { hit[place.at] ^= 1 << UInt8(place.bit) }
    try hit.write(to: log)
  }

  private func items() throws -> Int64 {
    try QueueTable(folder.open("crashed.db")).counts(of: tag(1)).total
  }

  @Test func theIndexNamesEveryFrame() throws {
    #expect(index.frames == (before.count - 32) / LogRepairTests.frame)
    #expect(!index.claimsMore(than: nil, in: folder.path + "/none"))
  }

  @Test func aWholeLogStaysAsItIs() throws {
    #expect(try LogRepair.repair(path, index))
    #expect(try Data(contentsOf: log) == before)
    #expect(try items() == 10)
  }

  /// The header, the first frame's header, and low bits of pages.
  @Test(arguments: 0..<80)
  func aFlippedBitIsTurnedBack(round: Int) throws {
    let page = 56 + (before.count - 57) * (round - 55) / 25 / 4 * 4
    try flip([(round < 56 ? round : page, round % 8)])
    #expect(index.claimsMore(than: nil, in: path))
    #expect(try LogRepair.repair(path, index))
    // The header's counter, and the checksum over it, may differ
    #expect(try round < 32 || Data(contentsOf: log) == before)
    #expect(try items() == 10)
  }

  @Test func severalFlipsOfAFrameStayAndCostNoOtherFrame() throws {
    let start = 32 + 3 * LogRepairTests.frame
    try flip([(start + 1000, 2), (start + 1500, 3), (start + 2000, 2)])
    #expect(try !LogRepair.repair(path, index))
    let after = try Data(contentsOf: log)
    #expect(after[..<start] == before[..<start])
    #expect(after.count == before.count)
    let database = try folder.open("crashed.db")
    #expect(database.version?.frames == index.frames)
  }

  @Test func aWrongPageNumberIsFoundByWhatThePageHeld() throws {
    // A high bit of the number: the checksum alone cannot tell it from others
    let last = index.frames - 1
    for frame in last - 4...last {
      for bit in 0..<3 {
        try flip([(32 + frame * LogRepairTests.frame + 3, bit)])
        #expect(try LogRepair.repair(path, index))
        #expect(try Data(contentsOf: log) == before)
      }
    }
  }

  @Test func aLogThatIsTooShortIsDamaged() throws {
    try before.dropLast(LogRepairTests.frame).write(to: log)
    let failure = #expect(throws: Failure.self) { try LogRepair.repair(path, index) }
    #expect(failure?.code == .storageDamaged)
  }

  @Test func commitsThatFollowTheIndexStay() throws {
    // A power cut can leave an index that is older than the log
    let database = try folder.open("crashed.db")
    for number in 10..<12 { _ = try QueueTable(database).insert(queueRow(number)) }
    database.keepsLog = true
    database.close()
    #expect(try LogRepair.repair(path, index))
    #expect(try items() == 12)
  }

  @Test func anotherLogsIndexClaimsNothing() throws {
    let database = try folder.open()
    try database.flush()
    _ = try QueueTable(database).insert(queueRow(20))
    try FileManager.default.removeItem(at: log)
    try FileManager.default.copyItem(atPath: database.path + "-wal", toPath: log.path)
    #expect(!index.claimsMore(than: database.version, in: path))
    #expect(!index.claimsMore(than: nil, in: path))
  }

  @Test func anIndexInUseIsNotRead() throws {
    let database = try folder.open("crashed.db")
    #expect(LogIndex.left(of: path) == nil)
    database.close()
  }
}
