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

  @Test func otherProcessesLeasesAreLookedAtEveryFiveSeconds() throws {
    let rig = try Rig.atHome()
    try expect(rig.uploader.nextLeaseCheckMS(rig.now), equals: nil)
    try rig.add(id(1))
    _ = try rig.upload()
    try expect(rig.uploader.nextLeaseCheckMS(rig.now), equals: nil)
    try rig.add(id(2))
    _ = try lease(rig, leftMS: 60_000)
    try expect(rig.uploader.nextLeaseCheckMS(rig.now), equals: 5000)
    rig.advance(58_000)
    try expect(rig.uploader.nextLeaseCheckMS(rig.now), equals: 2000)
  }

  @Test func aBatchIsSortedByIDAndLeased() throws {
    // Given
    let rig = try Rig.atHome()
    for number in [3, 1, 2] { try rig.add(id(number)) }
    let uploads = try rig.core.meta.int(.uploads) ?? 0
    // When
    let batch = try rig.upload()
    // Then
    expect(batch.items.map { $0.id }, equals: [id(1), id(2), id(3)])
    expect(batch.columns, equals: ["id", "org_id", "user_id", "type", "minutes"])
    try expect(rig.state(id(1)), equals: "sending")
    try expect(rig.core.meta.int(.uploads), equals: uploads + 1)
    try expect(rig.core.syncRuns.find(of: try rig.session.owner) != nil)
  }

  @Test func afterAFailureOneItemProbesTheService() throws {
    let rig = try Rig.atHome()
    for number in 1...3 { try rig.add(id(number)) }
    try rig.pauses.backOff(.upload, try response(503), rig.now)
    try expect(rig.upload().items.count, equals: 1)
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

  @Test func aColumnThatNeitherTheServerNorTheConfigurationHasParksItsItems() throws {
    // Given an item of a column that the next version of the app does not list any more
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let other = try Rig(
      backend: #","queue":{"activity":{"table":"activities","columns":["type"]}}"#,
      folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    let batch = try other.upload()
    expect(batch.columns.contains("minutes"))
    // When
    try other.settlement.finish(
      batch, isCurrent: true,
      try response(
        400,
        #"{"code":"PGRST204","message":"Could not find the 'minutes' column of 'activities' in the schema cache"}"#
      ), other.now)
    // Then
    try expect(other.state(id(1)), equals: "parked, missing_column, attempts 1")
  }

  @Test(arguments: [1, 2])
  func anUnreadableItemIsParkedAndTheOthersGoOn(_ number: Int) throws {
    // Given two items, one of which does not open
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    try rig.damage(id(number))
    // When
    try rig.uploader.send(try rig.session, rig.now)
    // Then
    try expect(rig.state(id(number)), equals: "parked, unreadable, attempts 1")
    if number == 1 {
      expect(rig.inFlight.requests.isEmpty)
      try expect(rig.state(id(2)), equals: "pending")
    } else {
      expect(rig.inFlight.requests.count, equals: 1)
      try expect(rig.state(id(1)), equals: "sending")
    }
  }

  @Test func abandonedReadBacksAreSentAgainAndCharged() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[]"), rig.now)
    expect(rig.uploader.nextReadBack != nil)
    try rig.uploader.abandonReadBacks()
    expect(rig.uploader.nextReadBack == nil)
    // The server may have stored the item.
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
  }
}
