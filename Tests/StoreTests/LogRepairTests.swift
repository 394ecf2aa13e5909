import Base
import Foundation
import TestSupport
import Testing

@testable import Store

/// A damaged log is written anew, so that no commit is lost that its index names.
@Suite struct LogRepairTests {
  let folder: TemporaryFolder
  var path: String { folder.path + "/crashed.db" }
  var log: URL { URL(fileURLWithPath: path + "-wal") }
  let index: LogIndex
  let before: Data
  static let frame = 24 + 4096

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
    expect(index.frames, equals: (before.count - 32) / LogRepairTests.frame)
    expect(!index.claimsMore(than: nil, in: folder.path + "/none"))
  }

  @Test func aWholeLogStaysAsItIs() throws {
    try expect(LogRepair.repair(path, index))
    try expect(Data(contentsOf: log), equals: before)
    try expect(items(), equals: 10)
  }

  /// The header, the first frame's header, and low bits of pages.
  @Test(arguments: Array(stride(from: 0, to: 80, by: sized(7, full: 1))))
  func aFlippedBitIsTurnedBack(round: Int) throws {
    let page = 56 + (before.count - 57) * (round - 55) / 25 / 4 * 4
    try flip([(round < 56 ? round : page, round % 8)])
    expect(index.claimsMore(than: nil, in: path))
    try expect(LogRepair.repair(path, index))
    // The header's counter, and the checksum over it, may differ
    try expect(round < 32 || Data(contentsOf: log) == before)
    try expect(items(), equals: 10)
  }

  @Test func severalFlipsOfAFrameStayAndCostNoOtherFrame() throws {
    let start = 32 + 3 * LogRepairTests.frame
    try flip([(start + 1000, 2), (start + 1500, 3), (start + 2000, 2)])
    try expect(!LogRepair.repair(path, index))
    let after = try Data(contentsOf: log)
    expect(after[..<start], equals: before[..<start])
    expect(after.count, equals: before.count)
    expect(after[start..<start + 8], equals: before[start..<start + 8])
    let page = start + 24..<start + LogRepairTests.frame
    expect(zip(after[page], before[page]).count { $0 != $1 }, equals: 3)
    let database = try folder.open("crashed.db")
    expect(database.version?.frames, equals: index.frames)
  }

  private func start(_ frame: Int) -> Int { 32 + frame * LogRepairTests.frame }

  /// Flips of a frame that cannot be turned back.
  private func severalFlips(_ frame: Int) -> [(at: Int, bit: Int)] {
    [1000, 1500, 2000].map { (start(frame) + $0, 2) }
  }

  private func number(_ data: Data, _ frame: Int) -> UInt32 {
    data[start(frame)..<start(frame) + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  @Test func behindADamagedFrameTheOthersAreMended() throws {
    try flip(severalFlips(3) + [(start(6) + 1000, 1)])
    try expect(!LogRepair.repair(path, index))
    let page = start(6) + 24..<start(7)
    try expect(Data(contentsOf: log)[page], equals: before[page])
  }

  @Test func flipsOfNeighbouringFramesAreTurnedBack() throws {
    try flip([(start(3) + 1000, 2), (start(4) + 2000, 5), (start(5) + 500, 0)])
    try expect(LogRepair.repair(path, index))
    try expect(Data(contentsOf: log), equals: before)
  }

  /// Such a flip changes one bit of the checksum, as a flip of the stored checksum does.
  @Test(arguments: 0..<16) func aFlipOfTheLastWordsIsTurnedBack(bit: Int) throws {
    let word = start(4) - (bit < 8 ? 8 : 4)
    try flip([(word + (index.isBigEndian ? 3 : 0), bit % 8)])
    try expect(LogRepair.repair(path, index))
    try expect(Data(contentsOf: log), equals: before)
  }

  /// Flips of a word's highest bit have one of three effects, so that many places may be meant.
  @Test(arguments: 0..<3) func aFlipThatIsNotTheOnlyExplanationStays(pair: Int) throws {
    let place = start(3) + 24 + 800 + 8 * pair + (index.isBigEndian ? 0 : 3)
    try flip([(place, 7)])
    let hit = try Data(contentsOf: log)
    try expect(!LogRepair.repair(path, index))
    let after = try Data(contentsOf: log)
    expect(number(after, 3), equals: number(before, 3))
    expect(after[start(3) + 24..<start(4)], equals: hit[start(3) + 24..<start(4)])
  }

  @Test(arguments: 0..<32) func aDamagedFramesPageIsTheOneThatItIsMostLike(bit: Int) throws {
    // The last frame's page has a count alone, too little to be like another image.
    let frame = index.frames - 2
    try flip(severalFlips(frame) + [(start(frame) + 3 - bit / 8, bit % 8)])
    try expect(!LogRepair.repair(path, index))
    try expect(number(Data(contentsOf: log), frame), equals: number(before, frame))
  }

  @Test func aNewPageIsNotTakenForOneThatIsALittleLikeIt() throws {
    let database = try folder.open("new.db")
    try QueueTable(database).fill(200)
    try database.flush()
    let pages = try Data(contentsOf: URL(fileURLWithPath: database.path)).count / 4096
    var state: UInt64 = 42
    let body = (0..<20_000).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
    _ = try QueueTable(database).insert(queueRow(900, body: body))
    let copy = folder.path + "/copy.db"
    for suffix in ["", "-wal", "-shm"] {
      try FileManager.default.copyItem(atPath: database.path + suffix, toPath: copy + suffix)
    }
    let index = try #require(LogIndex.left(of: copy))
    let whole = try Data(contentsOf: URL(fileURLWithPath: copy + "-wal"))
    var hit = whole
    let new = (0..<index.frames).filter { number(whole, $0) > pages }
    for frame in new { for place in severalFlips(frame) { hit[place.at] ^= 1 << UInt8(place.bit) } }
    try hit.write(to: URL(fileURLWithPath: copy + "-wal"))
    try expect(!LogRepair.repair(copy, index))
    let after = try Data(contentsOf: URL(fileURLWithPath: copy + "-wal"))
    expect(new.count >= 4)
    expect(new.map { number(after, $0) }, equals: new.map { number(whole, $0) })
  }

  // MARK: Frames without a page

  private func unname(_ frames: some Sequence<Int>) throws {
    var hit = before
    for frame in frames {
      for place in severalFlips(frame) { hit[place.at] ^= 1 << UInt8(place.bit) }
      hit.replaceSubrange(start(frame)..<start(frame) + 4, with: Data(repeating: 0xFF, count: 4))
    }
    try hit.write(to: log)
  }

  /// It would make the database larger than any. What the frame held is lost.
  @Test(
    arguments: [([3], [2]), ([3, 4], [2, 2]), ([0], [1]), ([0, 1], [2, 2])] as [([Int], [Int])])
  func aFrameThatNamesNoPageRepeatsItsNeighbour(frames: [Int], neighbours: [Int]) throws {
    try unname(frames)
    try expect(!LogRepair.repair(path, index))
    let after = try Data(contentsOf: log)
    for (frame, neighbour) in zip(frames, neighbours) {
      expect(number(after, frame), equals: number(before, neighbour))
      expect(
        after[start(frame) + 24..<start(frame + 1)]
          .elementsEqual(before[start(neighbour) + 24..<start(neighbour + 1)]))
      // Commits end where they did.
      let commit = start(frame) + 4..<start(frame) + 8
      expect(after[commit], equals: before[commit])
    }
    let database = try folder.open("crashed.db")
    expect(database.version?.frames, equals: index.frames)
  }

  /// The only page of which a number outside of the database is one bit away, as the table's was that
  /// held its first item: nothing in its image is like what it held.
  @Test(arguments: [0, 8, 16, 24]) func aFrameThatCanBeOfOnePageOnlyIsOfThat(bit: Int) throws {
    let frame = index.frames - 1
    var hit = before
    for at in start(frame) + 24..<start(frame + 1) { hit[at] = 0x55 }
    hit[start(frame) + 3 - bit / 8] ^= 0x80
    try hit.write(to: log)
    expect(number(hit, frame) > index.pages)
    try expect(!LogRepair.repair(path, index))
    let after = try Data(contentsOf: log)
    expect(number(after, frame), equals: number(before, frame))
    expect(after[(start(frame) + 24)...], equals: hit[(start(frame) + 24)...])
  }

  @Test func aLogWhoseFramesNameNoPagesIsDamaged() throws {
    try unname(0..<index.frames)
    let failure = #expect(throws: Failure.self) { try LogRepair.repair(path, index) }
    expect(failure?.code, equals: .storageDamaged)
  }

  @Test func aWrongPageNumberIsFoundByWhatThePageHeld() throws {
    // A high bit of the number: the checksum alone cannot tell it from others
    let last = index.frames - 1
    for frame in last - 4...last {
      for bit in 0..<3 {
        try flip([(32 + frame * LogRepairTests.frame + 3, bit)])
        try expect(LogRepair.repair(path, index))
        try expect(Data(contentsOf: log), equals: before)
      }
    }
  }

  @Test(arguments: [1, 64, LogRepairTests.frame])
  func aLogThatIsTooShortIsDamaged(missing: Int) throws {
    try before.dropLast(missing).write(to: log)
    let failure = #expect(throws: Failure.self) { try LogRepair.repair(path, index) }
    expect(failure?.code, equals: .storageDamaged)
  }

  /// It is written anew in memory, so that there is a limit.
  @Test func aLogOfMoreThan64MBIsNotRepaired() throws {
    let file = try FileHandle(forWritingTo: log)
    try file.truncate(atOffset: 1 << 26 + 1)
    let failure = #expect(throws: Failure.self) { try LogRepair.repair(path, index) }
    expect(failure?.code, equals: .storageDamaged)
    try file.truncate(atOffset: 1 << 26)
    try file.close()
    try expect(LogRepair.repair(path, index))
    try expect(Data(contentsOf: log), equals: before)
  }

  @Test func commitsThatFollowTheIndexStay() throws {
    // A power cut can leave an index that is older than the log
    let database = try folder.open("crashed.db")
    for number in 10..<12 { _ = try QueueTable(database).insert(queueRow(number)) }
    database.keepsLog = true
    database.close()
    try expect(LogRepair.repair(path, index))
    try expect(items(), equals: 12)
  }

  /// What stands behind the last commit is of an earlier log, which this one overwrites.
  @Test(arguments: 8..<16) func aFrameOfAnotherLogEndsTheLog(salt: Int) throws {
    let database = try folder.open("crashed.db")
    _ = try QueueTable(database).insert(queueRow(10))
    database.keepsLog = true
    database.close()
    var more = try Data(contentsOf: log)
    expect(more.count > before.count)
    more[start(index.frames) + salt] ^= 1
    try more.write(to: log)
    try expect(LogRepair.repair(path, index))
    try expect(Data(contentsOf: log), equals: before)
  }

  @Test func anotherLogsIndexClaimsNothing() throws {
    let database = try folder.open()
    try database.flush()
    _ = try QueueTable(database).insert(queueRow(20))
    try FileManager.default.removeItem(at: log)
    try FileManager.default.copyItem(atPath: database.path + "-wal", toPath: log.path)
    expect(!index.claimsMore(than: database.version, in: path))
    expect(!index.claimsMore(than: nil, in: path))
  }

  /// Its own checksum is right, so only its first word tells.
  @Test func aHeaderThatIsNoLogsIsADamagedLogs() throws {
    var header = [UInt8](repeating: 7, count: 32)
    var sum = LogChecksum(isBigEndian: true)
    sum.add(header[0..<24])
    for (at, word) in [(24, sum.first), (28, sum.second)] {
      for byte in 0..<4 {
        header[at + byte] = UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * byte))
      }
    }
    try (Data(header) + before.dropFirst(32)).write(to: log)
    expect(index.claimsMore(than: nil, in: path))
  }

  @Test func anIndexWithAFlippedBitIsNotUsed() throws {
    let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + "-shm")).prefix(136))
    expect(LogIndex(whole)?.frames, equals: index.frames)
    for bit in 0..<48 * 8 {
      // In one of the two copies of the header, and in both.
      for copies in [[0], [48], [0, 48]] {
        var hit = whole
        for copy in copies { hit[copy + bit / 8] ^= 1 << UInt8(bit % 8) }
        expect(LogIndex(hit) == nil, "bit \(bit)")
      }
    }
    expect(LogIndex(Array(whole.dropLast())) == nil)
  }

  @Test func anIndexInUseIsNotRead() throws {
    let database = try folder.open("crashed.db")
    expect(LogIndex.left(of: path) == nil)
    database.close()
  }
}
