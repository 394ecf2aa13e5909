import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing
import Vault

@testable import Engine

@Suite struct LockTests {
  /// Another process stores new tokens over the session of `rig`.
  private func refresh(_ rig: Rig) throws -> Rig {
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    try other.refresh.send(try other.session, other.now)
    let request = try #require(other.inFlight.requests.last)
    try other.loop.finish(request, try response(200, tokenReply(alice)), other.now)
    return other
  }

  @Test func anUnlockOverASessionThatChangedMeanwhileChangesNoKey() throws {
    // Given a row that was read before another process refreshed
    let rig = try Rig.atHome()
    let row = try rig.sessions.row()
    let other = try refresh(rig)
    let key = rig.keyStore.keys[.session]
    // When
    let outcome = try rig.lock.unlock(row)
    // Then the user is asked again, and the session still opens
    expect(outcome, equals: .withheld)
    expect(rig.keyStore.keys[.session] === key)
    other.sessions.reset(.file)
    try expect(other.decider.assess(.navigate).situation.record, equals: .open)
  }

  @Test func aLostBiometricKeyClosesOnlyTheSessionThatItBelongsTo() throws {
    // Given a row that was read before another process refreshed
    let rig = try Rig.atHome()
    let row = try rig.sessions.row()
    _ = try refresh(rig)
    // When
    try rig.lock.lock(.lostKey(generation: row.generation))
    // Then
    expect(rig.keyStore.keys[.session] != nil)
    try expect(rig.sessions.row().wrapSession != nil)
    // But the row of now is closed
    try rig.lock.lock(.lostKey(generation: rig.sessions.row().generation))
    expect(rig.keyStore.keys[.session] == nil)
    let closed = try rig.sessions.row()
    expect(closed.wrapSession == nil && closed.wrapBiometric == nil)
  }

  @Test func anUnlockGivesTheSessionNewKeys() throws {
    // Given a session that the user locked a while ago
    let rig = try Rig.atHome()
    let before = try rig.sessions.row()
    let key = rig.keyStore.keys[.session]
    try rig.lock.lock(.user)
    expect(rig.keyStore.keys[.session] == nil)
    try expect(rig.sessions.row().wrapSession, equals: nil)
    rig.advance(7000)
    // When
    try expect(rig.lock.unlock(try rig.sessions.row()), equals: .success)
    // Then
    let after = try rig.sessions.row()
    expect(rig.keyStore.keys[.session] != nil && rig.keyStore.keys[.session] !== key)
    expect(after.wrapSession != before.wrapSession && after.wrapBiometric != before.wrapBiometric)
    expect(after.tokens != before.tokens)
    expect(!after.locked)
    expect(after.authenticatedMS, equals: rig.now.wallMS)
    expect(after.backgroundWallMS, equals: nil)
    // And it opens with all that it had
    try expect(rig.sessions.reload(after), equals: .open)
    try expect(rig.session.choice, equals: orgA)
    try expect(rig.session.memberships?.count, equals: 2)
  }
}
