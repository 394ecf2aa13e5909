import Base
import Policy
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct NoticesTests {
  private func add(_ rig: Rig, _ reason: String, owner: [UInt8]? = nil) throws {
    try rig.notices.add("item_parked", reason: reason, owner: owner)
  }

  private func take(_ rig: Rig) throws -> String? {
    try rig.notices.take()?.string("reason")
  }

  @Test func theServersReasonForAnEndHasTheTextOfAnEnd() throws {
    let rig = try Rig.atHome()
    try rig.notices.add("session_ended", reason: "user_banned", owner: nil)
    let notice = try #require(try rig.notices.take())
    expect(notice["text"]?.string, equals: Messages.text(.sessionEnded, .en))
  }

  @Test func oneWhoseSealDoesNotOpenHidesNoOther() throws {
    let rig = try Rig.atHome()
    try rig.core.notices.add(0, owner: nil, sealed: [1, 2, 3])
    try add(rig, "server_rule")
    try expect(take(rig), equals: "server_rule")
    try rig.notices.acknowledge()
    try expect(!rig.notices.hasAny())
  }

  @Test func aNumberIsNeverUsedAgain() throws {
    // Given two handles that have given the same notice
    let rig = try Rig.atHome()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.core.keyRing.state(for: other.core.database)
    try add(rig, "server_rule")
    for each in [rig, other] { try expect(take(each), equals: "server_rule") }
    // When one has acknowledged it, and another notice comes
    try other.notices.acknowledge()
    try add(other, "too_long")
    // Then the first one does not acknowledge that
    try expect(take(rig), equals: "too_long")
  }
}
