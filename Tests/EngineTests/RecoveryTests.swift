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
}
