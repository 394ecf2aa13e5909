import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct RevocationTests {
  /// Carry out the order that is due, with this answer.
  private func carryOut(_ rig: Rig, _ status: Int, _ body: String? = nil) throws -> Purpose {
    let job = try #require(
      try rig.core.revocations.due(
        now: try rig.core.steady(rig.now), longestMS: Backoff.maxDelayMS))
    try rig.revocations.send(job, owner: nil, nil, rig.now)
    let request = try #require(rig.inFlight.requests.last)
    guard case .revoke(_, let step) = request.content else {
      throw Failure.defect("no revocation was sent")
    }
    try rig.loop.finish(request, try response(status, body), rig.now)
    return step == .refresh ? .refresh : .revoke
  }

  /// What the server says of the refresh token of an order whose access token has expired.
  @Test(arguments: [
    (400, "refresh_token_not_found", true), (400, "refresh_token_already_used", true),
    (400, "validation_failed", false), (503, "unexpected_failure", false), (429, "", false),
  ])
  func anOrderEndsWhenTheServerProvesThatItsSessionHasEnded(
    _ status: Int, _ code: String, _ isOver: Bool
  ) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.revocations.add(try rig.session, expiresMS: 0)
    // When
    let step = try carryOut(rig, status, #"{"code":"\#(code)","message":"m"}"#)
    // Then
    expect(step, equals: .refresh)
    try expect(rig.core.revocations.count(), equals: (isOver ? 0 : 1))
    let owed = try rig.lifecycle.status([:])["owed"]?.elements.compactMap { $0.string } ?? []
    expect(owed.contains("revoke"), equals: !isOver)
  }
}
