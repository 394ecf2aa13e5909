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
}
