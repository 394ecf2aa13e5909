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
    try rig.dispatch.finish(request, try response(status, body), rig.now)
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
    let owed = try rig.presence.status([:])["owed"]?.elements.compactMap { $0.string } ?? []
    expect(owed.contains("revoke"), equals: !isOver)
  }

  @Test func anOrderRefreshesAnExpiredTokenAndThenLogsOut() throws {
    let rig = try Rig.atHome()
    try rig.revocations.add(try rig.session, expiresMS: 0)
    try expect(carryOut(rig, 200, tokenReply(alice)), equals: .refresh)
    try expect(rig.core.revocations.count(), equals: 1)
    rig.advance(60_000)
    try expect(carryOut(rig, 204), equals: .revoke)
    try expect(rig.core.revocations.count(), equals: 0)
  }

  /// How long the access token still lasts.
  @Test(arguments: [(Int64(5000), Purpose.refresh), (5001, .revoke)])
  func aTokenCloseToItsEndIsRefreshedFirst(_ leftMS: Int64, _ step: Purpose) throws {
    let rig = try Rig.atHome()
    try rig.revocations.add(try rig.session, expiresMS: rig.now.wallMS + leftMS)
    try expect(carryOut(rig, 503), equals: step)
  }

  /// Who is signed in when the order to end all of Alice's sessions is carried out.
  @Test(arguments: ["alice", "bob", "nobody"])
  func anOrderForAllSessionsUsesNobodyElsesToken(_ who: String) throws {
    // Given
    let rig = try Rig.atHome()
    let aliceToken = try rig.session.accessToken
    try rig.revocations.add(try rig.session, expiresMS: Int64.max / 2, global: true)
    switch who {
    case "alice": break
    case "bob": try rig.signIn(bob)
    default: try rig.sessions.clear(ended: nil)
    }
    let job = try #require(
      try rig.core.revocations.due(
        now: try rig.core.steady(rig.now), longestMS: Backoff.maxDelayMS))
    // When
    try rig.revocations.send(
      job, owner: try rig.sessions.row().owner, rig.sessions.session, rig.now)
    // Then
    let sent = try #require(rig.inFlight.last(rig.now))
    expect(
      sent.string("url")?.hasSuffix(who == "alice" ? "scope=others" : "scope=global"), equals: true)
    let bearer = "Bearer " + String(decoding: aliceToken.bytes, as: UTF8.self)
    expect(sent["headers"]?.string("Authorization"), equals: bearer)
  }

  // MARK: Logout

  @Test func theNextUserDoesNotWaitForTheLastOnesFailures() throws {
    let rig = try Rig.atHome()
    for purpose in Purpose.allCases { try rig.pauses.backOff(purpose, try response(503), rig.now) }
    _ = try rig.logout.logOut([:])
    for purpose in Purpose.allCases {
      try expect(rig.pauses.leftMS(purpose, rig.now) > 0, equals: !purpose.isAuth)
    }
  }

  @Test func aLogoutRevokesTheSessionThatIsStoredThen() throws {
    // Given a process that reads the session while another one stores Bob's
    let rig = try Rig.atHome()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    rig.sessions.reset(.file)
    rig.keyStore.onLoad = { name in
      guard name == .session else { return }
      rig.keyStore.onLoad = nil
      #expect(throws: Never.self) { try other.signIn(bob) }
    }
    // When
    _ = try rig.logout.logOut([:])
    // Then both are ended at the server: Alice's by Bob's sign-in, and Bob's
    expect(rig.keyStore.onLoad == nil)
    try expect(rig.core.revocations.count(), equals: 2)
    try expect(rig.sessions.row().owner, equals: nil)
  }
}
