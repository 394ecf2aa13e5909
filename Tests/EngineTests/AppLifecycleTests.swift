import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct AppLifecycleTests {
  private func owed(_ rig: Rig) throws -> [String] {
    try rig.lifecycle.status([:])["owed"]?.elements.compactMap { $0.string } ?? []
  }

  @Test func theTimeAwayCountsByTheMonotonicClock() throws {
    // Given an app that leaves the screen
    let rig = try Rig.atHome()
    _ = try rig.lifecycle.background([:])
    let row = try rig.sessions.row()
    expect(row.backgroundWallMS, equals: rig.now.wallMS)
    expect(row.backgroundMonotonicMS, equals: rig.now.monotonicMS)
    expect(row.backgroundBoot, equals: rig.now.bootID)
    // When an hour passes, and the user holds the device's clock back
    rig.advance(3_700_000, wallMS: 1000)
    // Then the lock is due all the same
    _ = try rig.lifecycle.foreground([:])
    expect(rig.news.takeScreen()?.string("screen"), equals: "unlock")
  }

  @Test func anUnlockLetsTheUserInAndAnotherAnswerDoesNot() throws {
    let rig = try Rig.atHome()
    _ = try rig.lifecycle.lock([:])
    let key = rig.keyStore.keys[.biometric]
    rig.keyStore.refusal = .cancelled
    _ = try rig.lifecycle.unlock([:])
    expect(rig.news.takeScreen()?.string("reason"), equals: "biometric_cancelled")
    rig.keyStore.refusal = nil
    expect(rig.keyStore.keys[.biometric] === key)
    expect(rig.hostView.visit, equals: .outside)
    try expect(refusal { try rig.decider.requireSession() }, equals: .sessionLocked)
    _ = try rig.lifecycle.unlock([:])
    expect(rig.hostView.visit, equals: .inside)
    try expect(rig.decider.requireSession().userID, equals: alice)
  }

  @Test func aStartThatIsReportedTwiceUndoesNothing() throws {
    let rig = try Rig.atHome()
    for _ in 0..<3 {
      _ = try rig.lifecycle.resume([:])
      expect(rig.news.takeScreen()?.string("screen"), equals: "home")
    }
    expect(rig.hostView.visit, equals: .inside)
  }

  @Test func theStatusNamesWhatIsOwed() throws {
    // Given
    let rig = try Rig.atHome()
    rig.tokens.confirm(rig.now)
    try expect(owed(rig).isEmpty)
    // When, then
    rig.tokens.requireValidation()
    try expect(owed(rig), equals: ["validation"])
    rig.check.ask(.keepingAnswer, rig.now)
    try expect(owed(rig), equals: ["validation", "guard"])
    try rig.revocations.add(try rig.session, expiresMS: 0)
    try rig.sessions.keys.erasures.owe(.biometric)
    rig.tokens.refuse()
    try expect(owed(rig), equals: ["refresh", "validation", "guard", "revoke", "erase"])
  }
}
