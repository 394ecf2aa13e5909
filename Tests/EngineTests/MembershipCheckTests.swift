import Base
import Policy
import TestSupport
import Testing

@testable import Engine

@Suite struct MembershipCheckTests {
  /// `guard_timeout_ms`: when a waiting host stops waiting.
  private static let timeoutMS: Int64 = 2500

  @Test func aCheckThatWasAskedIsPendingUntilItsDeadline() throws {
    // Given
    let rig = try Rig()
    expect(rig.check.freshness(rig.now), equals: .cached)
    // When
    rig.check.ask(.keepingAnswer, rig.now)
    // Then
    expect(rig.check.isNeeded)
    expect(rig.check.timeoutLeftMS(rig.now), equals: Self.timeoutMS)
    for (passed, freshness) in [
      (0, Situation.Freshness.pending), (2499, .pending), (2500, .unreachable),
    ] {
      var at = rig.now
      at.monotonicMS += Int64(passed)
      expect(rig.check.freshness(at), equals: freshness, "after \(passed) ms")
    }
  }

  @Test func offlineAndFailedChecksAreUnreachable() throws {
    let rig = try Rig()
    rig.check.ask(.keepingAnswer, rig.now)
    rig.check.fail()
    expect(rig.check.freshness(rig.now), equals: .unreachable)
    // A new request is another chance.
    rig.check.ask(.keepingAnswer, rig.now)
    expect(rig.check.freshness(rig.now), equals: .pending)
    _ = rig.reachability.setOnline(false)
    expect(rig.check.freshness(rig.now), equals: .unreachable)
  }

  @Test func anAnswerEndsTheCheckAndConfirms() throws {
    let rig = try Rig()
    rig.check.ask(.keepingAnswer, rig.now)
    rig.check.fail()
    rig.check.confirm()
    expect(!rig.check.isNeeded)
    expect(rig.check.isConfirmed)
    expect(!rig.check.hasFailed)
    expect(rig.check.freshness(rig.now), equals: .confirmed)
  }

  /// An earlier answer, a running check, what is asked: does the answer count, how long is left?
  @Test(arguments: [
    (true, false, MembershipCheck.Request.keepingAnswer, true, Int64(2500)),
    (true, false, .discardingAnswer, false, 2500),
    (false, true, .keepingAnswer, false, 1500),
    (false, true, .discardingAnswer, false, 2500),
    (false, false, .keepingAnswer, false, 2500),
  ])
  func aRequestKeepsOrDiscardsTheAnswerAndTheDeadline(
    wasConfirmed: Bool, wasAsked: Bool, request: MembershipCheck.Request, isConfirmed: Bool,
    leftMS: Int64
  ) throws {
    // Given
    let rig = try Rig()
    rig.check.ask(.discardingAnswer, rig.now)
    if wasConfirmed { rig.check.confirm() }
    if !wasAsked, !wasConfirmed { rig.check.reset() }
    rig.advance(1000)
    // When
    rig.check.ask(request, rig.now)
    // Then
    expect(rig.check.isNeeded)
    expect(rig.check.isConfirmed, equals: isConfirmed)
    expect(rig.check.timeoutLeftMS(rig.now), equals: leftMS)
  }

  /// A host that was told a deadline keeps it; another one gets a new deadline.
  @Test(arguments: [
    (Reason.guardPending, Int64(1500)), (.signingIn, 1500), (.active, 2500),
    (.serverUnreachable, 2500),
  ])
  func askingSilentlyKeepsADeadlineThatTheHostWasTold(_ shown: Reason, _ leftMS: Int64) throws {
    // Given
    let rig = try Rig()
    rig.check.ask(.discardingAnswer, rig.now)
    rig.hostView.remember(["screen": "wait"], .wait, shown)
    rig.advance(1000)
    // When
    rig.check.askSilently(.discardingAnswer, rig.now)
    // Then
    expect(rig.check.timeoutLeftMS(rig.now), equals: leftMS)
    expect(rig.check.isNeeded)
  }

  @Test func askingSilentlyDiscardsTheAnswerAndTheFailure() throws {
    let rig = try Rig()
    rig.hostView.remember(["screen": "wait"], .wait, .guardPending)
    rig.check.confirm()
    rig.check.fail()
    rig.check.askSilently(.discardingAnswer, rig.now)
    expect(!rig.check.isConfirmed)
    expect(!rig.check.hasFailed)
  }

  @Test func aResetForgetsAllButTheStart() throws {
    // Given
    let rig = try Rig()
    rig.check.ask(.discardingAnswer, rig.now)
    rig.check.fail()
    rig.advance(1000)
    // When
    rig.check.reset()
    // Then
    expect(!rig.check.isNeeded)
    expect(!rig.check.hasFailed)
    expect(rig.check.ageMS(rig.now), equals: 1000)
  }

  @Test func everyChangeAdvancesTheRevision() throws {
    let rig = try Rig()
    for change in [
      { rig.check.ask(.keepingAnswer, rig.now) }, { rig.check.fail() }, { rig.check.confirm() },
      { rig.check.reset() },
    ] {
      let before = rig.core.revision.value
      change()
      expect(rig.core.revision.value != before)
    }
  }
}
