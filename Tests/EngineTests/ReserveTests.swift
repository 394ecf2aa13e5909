import Base
import TestSupport
import Testing

@testable import Engine

@Suite struct ReserveTests {
  @Test func aMegabyteIsKeptAndGivenToTheCallThatNeedsIt() throws {
    // Given
    let rig = try Rig.atHome()
    let reserve = Reserve(rig.core)
    try reserve.make()
    expect(rig.folder.bytes("holdfast.reserve")?.count, equals: 1_048_576)
    // When
    expect(reserve.release())
    // Then the room is free, until the next item is added
    expect(rig.folder.bytes("holdfast.reserve")?.isEmpty, equals: true)
    try rig.add(id(1))
    expect(rig.folder.bytes("holdfast.reserve")?.count, equals: 1_048_576)
  }

  @Test func theLogTakesTheRoomAndGivesItBackForTheReserve() throws {
    // Given a call that found the disk full
    let rig = try Rig.atHome()
    let reserve = Reserve(rig.core)
    try reserve.make()
    let before = try #require(rig.folder.bytes("holdfast.db-wal")).count
    expect(reserve.release())
    // Then the log has the room, transactions are small, and the next ones begin it anew
    let size = before + 1_048_576
    expect(rig.folder.bytes("holdfast.db-wal")?.count, equals: size)
    expect(rig.core.database.isTight)
    for time in 0..<300 { try rig.core.meta.set(.lastSyncRun, .int(Int64(time))) }
    expect(rig.folder.bytes("holdfast.db-wal")?.count, equals: size)
    // and it can be read, also by another process
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    try expect(other.core.meta.int(.lastSyncRun), equals: 299)
    // When the disk has room for the reserve again, then transactions need not be small
    reserve.followRoom()
    expect(!rig.core.database.isTight)
    expect(rig.folder.bytes("holdfast.reserve")?.count, equals: 1_048_576)
    // and an empty log gives all of its room back
    expect(rig.core.database.emptyLog(), equals: Int64(size))
    try expect(rig.core.meta.int(.lastSyncRun), equals: 299)
  }

  @Test func aLogThatWasEmptiedInVainTakesItsRoomAgain() throws {
    // Given a disk that is full, whose log has the room
    let rig = try Rig.atHome()
    let reserve = Reserve(rig.core)
    try reserve.make()
    expect(reserve.release())
    // When an item gets no room, though the log gave its own
    let room = rig.core.database.emptyLog()
    expect(room > 1_048_576)
    rig.core.database.giveToLog(room)
    // Then the log has it again, and is used
    expect(rig.folder.bytes("holdfast.db-wal")?.count, equals: Int(room))
    try rig.core.meta.set(.lastSyncRun, .int(7))
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    try expect(other.core.meta.int(.lastSyncRun), equals: 7)
    expect(rig.folder.bytes("holdfast.db-wal")?.count, equals: Int(room))
  }

  @Test func theRoomIsWorthAnotherTryWhileTheLogCannotBeShortened() throws {
    // Given a reader in another process, which sees the file as it was before the last commit
    let rig = try Rig.atHome()
    let reserve = Reserve(rig.core)
    try rig.add(id(1))
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    let releases = try other.core.database.first("SELECT 1 FROM queue") {
      (_) throws(Failure) -> [Bool] in
      try rig.core.meta.set(.lastSyncRun, .int(7))
      return [reserve.release(), reserve.release()]
    }
    // Then it counts once
    expect(releases, equals: [true, false])
    expect(rig.folder.bytes("holdfast.reserve")?.isEmpty, equals: true)
  }
}
