import Base
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct UploaderTests {
  /// Let another handle hold the pending items. `boot`: that of its process.
  private func lease(_ rig: Rig, boot: String = "boot", leftMS: Int64 = 60_000) throws -> [UInt8] {
    let holder = Holder(bootID: boot, nonce: 5).bytes
    _ = try rig.core.queue.take(
      of: try rig.session.owner, holder: holder,
      until: try rig.core.steadyToStore(rig.now) + leftMS,
      maximumSize: 1_000_000
    ) { _ in 10 }
    return holder
  }

  /// Who holds an item, for how long, and whether the lease is taken back. Only that of a process
  /// that runs is respected, and only in time.
  @Test(arguments: [
    ("a running process", Int64(60_000), false), ("a running process", 1, false),
    ("a running process", 0, true), ("a process before the start", 60_000, true),
    ("this handle", 60_000, true),
  ])
  func aLostLeaseIsTakenBackAndCharged(_ holder: String, _ leftMS: Int64, _ isLost: Bool) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1))
    switch holder {
    case "this handle": _ = try rig.upload()
    case "a running process": _ = try lease(rig, leftMS: leftMS)
    default: _ = try lease(rig, boot: "earlier", leftMS: leftMS)
    }
    // When, then
    try expect(rig.uploader.hasLostLeases(rig.now), equals: isLost)
    try rig.uploader.reclaimLostLeases(rig.now)
    try expect(rig.state(id(1)), equals: (isLost ? "pending, attempts 1" : "sending"))
    try expect(!rig.uploader.hasLostLeases(rig.now))
  }

  @Test func itemsOfAnUnknownKindWaitForAConfigurationThatHasIt() throws {
    // Given an item of a kind that the next configuration lacks
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let other = try Rig(
      backend: #","queue":{"visit":{"table":"v","columns":["a"]}}"#, folder: rig.folder,
      keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    // When
    try other.uploader.send(try other.session, other.now)
    // Then
    expect(other.inFlight.requests.isEmpty)
    try expect(other.state(id(1)), equals: "waits for kind")
    // And this handle looks at them once.
    try expect(!other.uploader.hasHeldKinds(try other.session))
    try expect(rig.uploader.hasHeldKinds(try rig.session))
  }
}
