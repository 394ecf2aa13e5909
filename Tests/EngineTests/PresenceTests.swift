import Base
import Policy
import Store
import Supabase
import Testing

@testable import Engine

@Suite struct PresenceTests {
  private func owed(_ rig: Rig) throws -> [String] {
    try rig.presence.status([:])["owed"]?.elements.compactMap { $0.string } ?? []
  }

  @Test func theTimeAwayCountsByTheMonotonicClock() throws {
    // Given an app that leaves the screen
    let rig = try Rig.atHome()
    _ = try rig.presence.background([:])
    let row = try rig.sessions.row()
    #expect(row.backgroundWallMS == rig.now.wallMS)
    #expect(row.backgroundMonotonicMS == rig.now.monotonicMS)
    #expect(row.backgroundBoot == rig.now.bootID)
    // When an hour passes, and the user holds the device's clock back
    rig.advance(3_700_000, wallMS: 1000)
    // Then the lock is due all the same
    #expect(try rig.presence.foreground([:]).string("screen") == "unlock")
  }

  @Test func anUnlockLetsTheUserInAndAnotherAnswerDoesNot() throws {
    let rig = try Rig.atHome()
    _ = try rig.presence.lock([:])
    _ = try rig.presence.unlock(["outcome": "cancelled"])
    #expect(rig.hostView.visit == .outside)
    #expect(try refusal { try rig.decider.requireSession() } == .sessionLocked)
    _ = try rig.presence.unlock(["outcome": "success"])
    #expect(rig.hostView.visit == .inside)
    #expect(try rig.decider.requireSession().userID == alice)
  }

  @Test func theStatusNamesWhatIsOwed() throws {
    // Given
    let rig = try Rig.atHome()
    rig.tokens.confirm(rig.now)
    #expect(try owed(rig).isEmpty)
    // When, then
    rig.tokens.requireValidation()
    #expect(try owed(rig) == ["validation"])
    rig.check.ask(.keepingAnswer, rig.now)
    #expect(try owed(rig) == ["validation", "guard"])
    try rig.revocations.add(try rig.session, expiresMS: 0)
    try rig.sessions.keys.owe(.biometric)
    rig.tokens.refuse()
    #expect(try owed(rig) == ["refresh", "validation", "guard", "revoke", "erase"])
  }
}
