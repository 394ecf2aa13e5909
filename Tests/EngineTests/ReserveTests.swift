import Base
import Testing

@testable import Engine

@Suite struct ReserveTests {
  @Test func aMegabyteIsKeptAndGivenToTheCallThatNeedsIt() throws {
    // Given
    let rig = try Rig.atHome()
    let reserve = Reserve(rig.core)
    try reserve.make()
    #expect(rig.folder.bytes("holdfast.reserve")?.count == 1_048_576)
    // When
    #expect(reserve.release())
    // Then the room is free, until the next item is added
    #expect(rig.folder.bytes("holdfast.reserve")?.isEmpty == true)
    try rig.add(id(1))
    #expect(rig.folder.bytes("holdfast.reserve")?.count == 1_048_576)
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
    #expect(releases == [true, false])
    #expect(rig.folder.bytes("holdfast.reserve")?.isEmpty == true)
  }
}
