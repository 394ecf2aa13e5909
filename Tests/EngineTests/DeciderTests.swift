import Base
import Policy
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct DeciderTests {
  /// The screens of the decisions, and what they say, that were emitted.
  private func emitted(_ rig: Rig) throws -> [String] {
    try rig.takeEvents().compactMap { $0["screen"] }.map {
      ($0.string("screen") ?? "") + " " + ($0["message"]?.string("code") ?? "-")
    }
  }

  private func shown(_ rig: Rig, _ occasion: Situation.Occasion = .resume) throws {
    try rig.decider.decide(occasion)
    _ = try rig.takeEvents()
  }

  // MARK: followChange

  @Test func nothingIsEmittedBeforeTheFirstDecision() throws {
    let rig = try Rig.atHome()
    try rig.end(.banned)
    try rig.decider.followChange()
    try expect(emitted(rig).isEmpty)
  }

  @Test func aChangedDecisionIsEmittedOnce() throws {
    // Given
    let rig = try Rig.atHome()
    try shown(rig)
    // When
    _ = rig.reachability.setOnline(false)
    for _ in 0..<2 { try rig.decider.followChange() }
    // Then the banner `offline` is new
    try expect(emitted(rig), equals: ["home -"])
    // When
    try rig.end(.banned)
    for _ in 0..<2 { try rig.decider.followChange() }
    // Then
    try expect(emitted(rig), equals: ["sign_in session_ended"])
  }

  @Test func anEventLetsNobodyInWhoIsLockedOut() throws {
    // Given somebody before the lock
    let rig = try Rig.atHome()
    try rig.lock.lock(.user)
    try rig.decider.receive(.foreground)
    _ = try rig.takeEvents()
    expect(rig.hostView.visit, equals: .outside)
    // When what the lock shows changes
    _ = rig.reachability.setOnline(false)
    try rig.decider.followChange()
    try rig.end(.banned)
    try rig.decider.followChange()
    // Then
    try expect(emitted(rig), equals: ["sign_in session_ended"])
    expect(rig.hostView.visit, equals: .outside)
  }

  @Test func aHostThatShowsAScreenKeepsItDuringACheck() throws {
    let rig = try Rig.atHome()
    try shown(rig)
    rig.check.ask(.discardingAnswer, rig.now)
    try rig.decider.followChange()
    try expect(emitted(rig).isEmpty)
  }

  @Test func aCallThatAsksForAScreenChangesNoneThatIsTheSame() throws {
    let rig = try Rig.atHome()
    try shown(rig)
    let same = try rig.decider.answer(try rig.decider.assess(.navigate).situation)
    expect(same.string("screen"), equals: "home")
    try expect(emitted(rig).isEmpty)
  }

  // MARK: Access

  /// What happened to the session, and the failure of a data call.
  @Test(arguments: [
    ("nothing", nil as ErrorCode?), ("logout", .sessionNone), ("lock", .sessionLocked),
    ("offline for weeks", .sessionLocked), ("locked key store", .keyStoreLocked),
    ("failed key store", .keyStoreFailed), ("lost key", .keyStoreKeyLost),
    ("ended membership", .orgRevoked), ("disabled organisation", .orgDisabled),
    ("no choice", .orgNone), ("a check that runs", nil),
  ])
  func dataNeedsAnOpenSessionAndAUsableOrganisation(_ event: String, _ code: ErrorCode?) throws {
    // Given
    let rig = try Rig.atHome()
    // When
    switch event {
    case "logout": try rig.sessions.end(.loggedOut)
    case "lock": try rig.lock.lock(.user)
    case "offline for weeks": rig.advance(15 * 86_400_000)
    case "locked key store":
      rig.core.keyRing.forget()
      rig.keyStore.refusal = .locked
    case "failed key store":
      rig.core.keyRing.forget()
      rig.keyStore.refusal = .failed
    case "lost key":
      rig.core.keyRing.forget()
      rig.keyStore.keys[.device] = nil
      try expect(rig.core.keyState() == .failed)
      rig.advance(60_000)
    case "ended membership": try rig.list(member(orgB))
    case "disabled organisation": try rig.list(member(orgA, orgStatus: "closed"))
    case "no choice":
      _ = try rig.sessions.update(ifGeneration: try rig.sessions.row().generation) {
        $0.choice = nil
      }
    case "a check that runs": rig.check.ask(.discardingAnswer, rig.now)
    default: break
    }
    // Then
    try expect(refusal { try rig.decider.requirePlace() }, equals: code)
  }

  @Test func assessingUnchangedTellsWhenOnlyAssessingCan() throws {
    // Given
    let rig = try Rig.atHome()
    try expect(rig.decider.assessUnchanged()?.situation.record, equals: .open)
    // When another process changes the session
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    try other.signIn(bob)
    // Then
    try expect(rig.decider.assessUnchanged() == nil)
    try expect(rig.session.userID, equals: alice)
    _ = try rig.decider.assess(.navigate)
    try expect(rig.decider.assessUnchanged() != nil)
    // And without keys
    rig.core.keyRing.forget()
    try expect(rig.decider.assessUnchanged() == nil)
  }
}
