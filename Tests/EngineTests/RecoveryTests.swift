import Base
import Policy
import Store
import TestSupport
import Testing

import class Foundation.FileManager

@testable import Engine

@Suite struct RecoveryTests {
  /// A folder whose main file is damaged. It held a session, a pending item (1), a parked one (2), one
  /// that waits for its organisation (3), and the child (4) of the first.
  private func damaged() throws -> (folder: TemporaryFolder, keyStore: MemoryKeyStore) {
    let rig = try Rig.atHome()
    for number in 1...3 { try rig.add(id(number)) }
    try rig.add(id(4), dependsOn: [id(1)])
    let row = try #require(try rig.row(id(2)))
    try rig.core.queue.transition(
      row.sequence,
      .parked, rejection: try ParkReason(.conflict).sealed(for: row, try rig.session.queueKey))
    try rig.core.queue.transition(
      try #require(try rig.row(id(3))).sequence, .waiting(.organisation))
    rig.core.database.close()
    try rig.folder.damage("holdfast.db")
    return (rig.folder, rig.keyStore)
  }

  @Test func itemsAndSessionAreCarriedOver() throws {
    // Given
    let (folder, keyStore) = try damaged()
    // When
    let rig = try Rig(folder: folder, keyStore: keyStore)
    expect(rig.recovery.hasRecovered)
    expect(rig.recovery.isNeeded)
    _ = try rig.decider.assess(.navigate)
    // Then; each item may have been sent after the state that was read was written
    expect(!rig.recovery.isNeeded)
    try expect(rig.session.userID, equals: alice)
    try expect(rig.session.choice, equals: orgA)
    try expect(
      (1...4).map { try rig.state(id($0)) },
      equals: [
        "pending, attempts 1", "parked, conflict, attempts 1",
        "waits for organisation, attempts 1", "waits for parent, attempts 1",
      ])
    try expect(rig.core.syncRuns.find(of: try rig.session.owner) != nil)
    let event = try #require(try rig.takeEvents().first)
    expect(event.string("type"), equals: "storage_recovered")
    expect(event.int("carried"), equals: 4)
    expect(event.bool("unreadable"), equals: false)
    expect(event.bool("session"), equals: true)
    // The damaged file is kept.
    let aside = try #require(event.string("file"))
    expect(folder.names.contains(aside))
  }

  @Test func aRecoveryIsDoneOnce() throws {
    let (folder, keyStore) = try damaged()
    let rig = try Rig(folder: folder, keyStore: keyStore)
    _ = try rig.decider.assess(.navigate)
    try expect(rig.takeEvents().count, equals: 1)
    _ = try rig.decider.assess(.navigate)
    let next = try Rig(folder: folder, keyStore: keyStore)
    expect(!next.recovery.isNeeded)
    _ = try next.decider.assess(.navigate)
    try expect(next.takeEvents().isEmpty)
  }

  @Test func aRecoveryWaitsForTheDeviceKey() throws {
    // Given a key store that is locked
    let (folder, keyStore) = try damaged()
    keyStore.refusal = .locked
    let rig = try Rig(folder: folder, keyStore: keyStore)
    try expect(rig.decider.assess(.navigate).situation.keys, equals: .locked)
    expect(rig.recovery.isNeeded)
    // When the process ends and the next one has the key
    keyStore.refusal = nil
    let next = try Rig(folder: folder, keyStore: keyStore)
    expect(next.recovery.isNeeded)
    expect(!next.recovery.hasRecovered)
    _ = try next.decider.assess(.navigate)
    // Then
    try expect(next.takeEvents().first?.int("carried"), equals: 4)
  }

  @Test func anItemWhoseSealDoesNotOpenIsUnreadable() throws {
    // Given a file of which one item's body was changed
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    try rig.damage(id(1))
    rig.core.database.close()
    try rig.folder.damage("holdfast.db")
    // When
    let next = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try next.decider.assess(.navigate)
    // Then
    let event = try #require(try next.takeEvents().first)
    expect(event.int("carried"), equals: 1)
    expect(event.bool("unreadable"), equals: true)
    try expect(next.state(id(1)), equals: "erased")
  }

  @Test func aRowThatDoesNotOpenIsUnreadableThoughNoIndexNamesIt() throws {
    // Given two items, one of which does not open, and indexes that are gone
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    try rig.damage(id(1))
    let pages = try rig.core.database.all(
      "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'queue' AND type = 'index'"
    ) { (row) throws(Failure) in row.int(0) }
    rig.core.database.close()
    var bytes = try #require(rig.folder.bytes("holdfast.db"))
    for page in pages {
      for at in Int(page - 1) * 4096..<Int(page) * 4096 { bytes[at] = 0x5A }
    }
    let isWritten = FileManager.default.createFile(
      atPath: rig.folder.path + "/holdfast.db", contents: .init(bytes))
    expect(isWritten)
    // When
    let next = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try next.decider.assess(.navigate)
    // Then
    let event = try #require(try next.takeEvents().first)
    expect(event.int("carried"), equals: 1)
    expect(event.bool("unreadable"), equals: true)
  }

  @Test func aSessionThatBeganInTheFreshFileIsKept() throws {
    // Given a sign-in before the keys could carry anything over
    let (folder, keyStore) = try damaged()
    let rig = try Rig(folder: folder, keyStore: keyStore)
    try rig.signIn(bob)
    // When
    _ = try rig.decider.assess(.navigate)
    // Then
    try expect(rig.session.userID, equals: bob)
    try expect(rig.takeEvents().first?.bool("session"), equals: false)
    try expect(rig.state(id(1), of: alice), equals: "pending, attempts 1")
  }

  @Test func theCarriedSessionHasANewGeneration() throws {
    let rig = try Rig.atHome()
    let generation = try rig.session.generation
    rig.core.database.close()
    try rig.folder.damage("holdfast.db")
    let next = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try next.decider.assess(.navigate)
    try expect(next.session.generation, equals: generation + 1)
  }

  @Test func aSoundFileIsNotSetAside() throws {
    let rig = try Rig.atHome()
    let before = rig.folder.names
    try expect(!rig.recovery.recover())
    expect(rig.folder.names, equals: before)
    expect(rig.sessions.session != nil)
  }

  @Test func noticesAndOrdersAreCarriedOver() throws {
    // Given a notice that was not acknowledged, and a session that is to be ended at the server
    let rig = try Rig.atHome()
    try rig.notices.add("item_parked", reason: "server_rule", owner: try rig.session.owner)
    try rig.revocations.add(try rig.session, expiresMS: 0)
    rig.core.database.close()
    try rig.folder.damage("holdfast.db")
    // When
    let next = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try next.decider.assess(.navigate)
    // Then
    try expect(next.takeEventTypes().sorted(), equals: ["item_parked", "storage_recovered"])
    try expect(next.core.revocations.count(), equals: 1)
  }

  @Test func aChildThatIsHeldWithItsOrganisationStaysHeld() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.add(id(2), dependsOn: [id(1)])
    try rig.core.queue.transition(
      try #require(try rig.row(id(2))).sequence, .waiting(.organisation))
    rig.core.database.close()
    try rig.folder.damage("holdfast.db")
    let next = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try next.decider.assess(.navigate)
    try expect(next.state(id(2)), equals: "waits for organisation, attempts 1")
  }

  @Test func aFileWithoutItsSessionRowIsSetAside() throws {
    // Given a file that SQLite finds sound
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.core.database.execute("DELETE FROM session")
    #expect(throws: Failure.self) { try rig.sessions.row() }
    // When
    try expect(rig.recovery.recover())
    // Then
    expect(rig.recovery.hasRecovered)
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    try expect(rig.sessions.row().owner, equals: nil)
  }

  @Test func aConnectionThatWorksIsKept() throws {
    let rig = try Rig.atHome()
    let before = rig.core.database
    try rig.recovery.followFiles()
    expect(rig.core.database === before)
    expect(rig.sessions.session != nil)
  }

  @Test func aFileThatFailsACallIsSetAsideThoughItsChecksPass() throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1))
    _ = rig.core.database.damage("a value that no version writes")
    // When
    try expect(rig.recovery.recover())
    // Then nothing of it is lost
    expect(rig.recovery.hasRecovered && !rig.recovery.isNeeded)
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    let event = try #require(try rig.takeEvents().first)
    expect(event.bool("unreadable"), equals: false)
    try expect(!rig.recovery.recover())
  }

  @Test func aFileThatAnotherProcessReplacedIsOpened() throws {
    // Given two processes
    let rig = try Rig.atHome()
    let other = try rig.withoutKey()
    try other.recovery.beginAnew()
    expect(rig.sessions.session != nil)
    // When
    try rig.recovery.followFiles()
    // Then
    expect(rig.sessions.session == nil)
    expect(rig.core.keyRing.keys == nil)
    expect(rig.core.database.isCurrent)
    try expect(rig.sessions.row().owner, equals: nil)
  }

  @Test func twoProcessesThatMissTheKeySetOneFileAside() throws {
    let rig = try Rig.atHome()
    let (first, second) = (try rig.withoutKey(), try rig.withoutKey())
    try first.recovery.beginAnew()
    let key = try #require(rig.keyStore.keys[.device(1)])
    second.advance(1000)
    try second.recovery.beginAnew()
    let aside = rig.folder.names.filter {
      $0.hasPrefix("holdfast.db.keyless-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
    }
    expect(aside.count, equals: 1)
    expect(first.core.database.isCurrent && second.core.database.isCurrent)
    expect(rig.keyStore.keys[.device(1)] === key)
  }

  @Test func aSignInWithoutTheKeyKeepsBothFilesUnderAnotherName() throws {
    // Given
    let rig = try Rig.atHome()
    _ = try rig.cache.open()
    let next = try rig.withoutKey()
    // When
    try next.recovery.beginAnew()
    // Then
    let aside = rig.folder.names.filter { $0.contains(".keyless-\(next.now.wallMS)") }
    expect(aside.contains { $0.hasPrefix("holdfast.db.") })
    expect(aside.contains { $0.hasPrefix("cache.db.") })
    expect(next.sessions.session == nil)
    try expect(next.sessions.row().owner, equals: nil)
  }

  @Test func aLostDeviceKeyChangesNothing() throws {
    // Given
    let rig = try Rig.atHome()
    let next = try rig.withoutKey()
    let names = next.folder.names
    // When
    try next.decider.decide(.resume)
    let decision = try #require(next.news.takeScreen())
    // Then
    expect(decision.string("screen"), equals: "sign_in")
    expect(decision.string("reason"), equals: "key_lost")
    expect(next.folder.names, equals: names)
  }
}

extension Rig {
  /// The next start, for longer than a missing key counts as no answer.
  fileprivate func withoutKey() throws -> Rig {
    keyStore.keys[.device] = nil
    let next = try Rig(folder: folder, keyStore: keyStore)
    try expect(next.core.keyState() == .failed)
    next.advance(60_000)
    return next
  }
}
