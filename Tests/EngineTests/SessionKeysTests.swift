import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing
import Vault

@testable import Engine

@Suite struct SessionKeysTests {
  /// What the key store has in the place of the session's key.
  @Test(arguments: ["nothing", "another key"])
  func aLockedRowAsksTheKeyStoreOnce(_ what: String) throws {
    // Given a process that starts
    let rig = try Rig.atHome()
    rig.sessions.reset(.file)
    _ = try rig.core.keyRing.state(for: rig.core.database)
    rig.keyStore.keys[.session] = what == "nothing" ? nil : try Key.random()
    let row = try rig.sessions.row()
    try expect(rig.sessions.reload(row), equals: .sealed)
    // When
    let loads = rig.keyStore.loads
    for _ in 0..<3 { try expect(rig.sessions.reload(row), equals: .sealed) }
    // Then
    expect(rig.keyStore.loads, equals: loads)
    expect(rig.sessions.keys.isLocked(row))
    expect(rig.sessions.record(row), equals: .sealed)
  }

  @Test(arguments: [
    (KeyRefusal.locked, Situation.Keys.locked), (.failed, .failed), (.lockout, .failed),
  ])
  func aKeyStoreThatGivesNoAnswerIsAskedAgain(
    _ refusal: KeyRefusal, _ expected: Situation.Keys
  ) throws {
    // Given a process that starts
    let rig = try Rig.atHome()
    rig.sessions.reset(.file)
    _ = try rig.core.keyRing.state(for: rig.core.database)
    rig.keyStore.refusal = refusal
    // When
    try expect(rig.sessions.reload(try rig.sessions.row()), equals: .sealed)
    // Then the session is not taken for locked
    expect(rig.sessions.keyState, equals: expected)
    expect(rig.core.keyRing.keys == nil)
    rig.keyStore.refusal = nil
    try expect(rig.decider.assess(.navigate).situation.record, equals: .open)
  }

  // MARK: Erasures that are owed

  @Test func aKeyThatTheStoreDidNotEraseIsErasedByALaterCallOfAnyProcess() throws {
    // Given a logout while the store refuses
    let rig = try Rig.atHome()
    rig.keyStore.refusal = .failed
    try rig.core.database.transaction { () throws(Failure) in
      for name in [KeyName.session, .biometric] { try rig.sessions.keys.erasures.owe(name) }
    }
    try rig.sessions.keys.erasures.eraseOwed()
    expect(rig.sessions.keys.erasures.isOwing)
    expect(rig.keyStore.keys[.session] != nil && rig.keyStore.keys[.biometric] != nil)
    // When another process has the same store, which works again
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    rig.keyStore.refusal = nil
    try other.sessions.keys.erasures.eraseOwed()
    // Then
    expect(rig.keyStore.keys[.session] == nil && rig.keyStore.keys[.biometric] == nil)
    expect(rig.keyStore.keys[.device] != nil)
    expect(!other.sessions.keys.erasures.isOwing)
    try expect(other.core.meta.int(.owedKeyErasures) ?? 0, equals: 0)
    // And this one learns it
    try rig.sessions.keys.erasures.eraseOwed()
    expect(!rig.sessions.keys.erasures.isOwing)
  }

  @Test func anErasureThatWasNotCommittedIsNotOwed() throws {
    // Given a file that takes nothing
    let rig = try Rig.atHome()
    try rig.core.database.execute("PRAGMA query_only=ON")
    #expect(throws: Failure.self) { try rig.sessions.keys.erasures.owe(.biometric) }
    // When it does
    try rig.core.database.execute("PRAGMA query_only=OFF")
    try rig.sessions.keys.erasures.eraseOwed()
    // Then
    expect(rig.keyStore.keys[.biometric] != nil)
    expect(!rig.sessions.keys.erasures.isOwing)
  }

  @Test func anErasureThatTheFileCouldNotBeToldIsMadeAndThenForgotten() throws {
    // Given a key store that refuses, and a file that takes no note
    let rig = try Rig.atHome()
    rig.keyStore.refusal = .failed
    try rig.core.database.execute("PRAGMA query_only=ON")
    #expect(throws: Failure.self) { try rig.sessions.keys.erasures.erase(.biometric) }
    expect(rig.sessions.keys.erasures.isOwing)
    // When both do
    rig.keyStore.refusal = nil
    try rig.core.database.execute("PRAGMA query_only=OFF")
    try rig.sessions.keys.erasures.eraseOwed()
    // Then
    expect(rig.keyStore.keys[.biometric] == nil)
    expect(!rig.sessions.keys.erasures.isOwing)
  }
}
