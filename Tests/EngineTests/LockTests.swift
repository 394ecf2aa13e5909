import Base
import Policy
import Store
import Supabase
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
    try other.dispatch.finish(request, try response(200, tokenReply(alice)), other.now)
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
    #expect(outcome == .withheld)
    #expect(rig.keyStore.keys[.session] === key)
    other.sessions.reset(.file)
    #expect(try other.decider.assess(.navigate).situation.record == .open)
  }

  @Test func aLostBiometricKeyClosesOnlyTheSessionThatItBelongsTo() throws {
    // Given a row that was read before another process refreshed
    let rig = try Rig.atHome()
    let row = try rig.sessions.row()
    _ = try refresh(rig)
    // When
    try rig.lock.dropWraps(row)
    // Then
    #expect(rig.keyStore.keys[.session] != nil)
    #expect(try rig.sessions.row().wrapSession != nil)
    // But the row of now is closed
    try rig.lock.dropWraps(try rig.sessions.row())
    #expect(rig.keyStore.keys[.session] == nil)
    let closed = try rig.sessions.row()
    #expect(closed.wrapSession == nil && closed.wrapBiometric == nil)
  }

  @Test func anUnlockGivesTheSessionNewKeys() throws {
    // Given a session that the user locked a while ago
    let rig = try Rig.atHome()
    let before = try rig.sessions.row()
    let key = rig.keyStore.keys[.session]
    try rig.lock.lock(byUser: true)
    #expect(rig.keyStore.keys[.session] == nil)
    #expect(try rig.sessions.row().wrapSession == nil)
    rig.advance(7000)
    // When
    #expect(try rig.lock.unlock(try rig.sessions.row()) == .success)
    // Then
    let after = try rig.sessions.row()
    #expect(rig.keyStore.keys[.session] != nil && rig.keyStore.keys[.session] !== key)
    #expect(after.wrapSession != before.wrapSession && after.wrapBiometric != before.wrapBiometric)
    #expect(after.tokens != before.tokens)
    #expect(!after.locked)
    #expect(after.authenticatedMS == rig.now.wallMS)
    #expect(after.backgroundWallMS == nil)
    // And it opens with all that it had
    #expect(try rig.sessions.reload(after) == .open)
    #expect(try rig.session.choice == orgA)
    #expect(try rig.session.memberships?.count == 2)
  }
}
