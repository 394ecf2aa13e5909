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
}
