import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct RefreshTests {
  /// The server gives a new token that lasts `expiresInS`.
  private func renew(_ rig: Rig, expiresInS: Int64 = 3600) throws {
    try rig.refresh.send(try rig.session, rig.now)
    let request = try #require(rig.inFlight.requests.last { $0.purpose == .refresh })
    try rig.loop.finish(
      request, try response(200, tokenReply(alice, expiresInS: expiresInS)), rig.now)
  }

  @Test func aNewTokenIsConfirmedByTheServerThatIssuedIt() throws {
    let rig = try Rig.atHome()
    rig.tokens.requireValidation()
    rig.tokens.refuse()
    rig.advance(300_000)
    expect(!rig.tokens.isConfirmed(rig.now))
    try renew(rig)
    expect(!rig.tokens.needsValidation)
    expect(!rig.tokens.isRefused)
    expect(rig.tokens.isConfirmed(rig.now))
    // And the next request has it.
    try expect(rig.session.generation, equals: rig.sessions.row().generation)
  }

  @Test func aHostThatWaitsForTheMembershipsIsToldThatTheRefreshFailed() throws {
    // Given a check that needs a new token first
    let rig = try Rig.atHome()
    rig.tokens.refuse()
    rig.check.ask(.discardingAnswer, rig.now)
    expect(rig.check.freshness(rig.now), equals: .pending)
    // When
    try rig.refresh.send(try rig.session, rig.now)
    let request = try #require(rig.inFlight.requests.last)
    try rig.loop.finish(request, try response(503), rig.now)
    // Then the cached ones are used at once
    expect(rig.check.freshness(rig.now), equals: .unreachable)
  }

  // MARK: The first session

  /// The end that the server names, or only the life time; the device's clock is 100 s behind.
  @Test(arguments: [true, false])
  func theServersTimeIsKnownFromTheFirstToken(_ hasEnd: Bool) throws {
    // Given
    let rig = try Rig()
    let aheadMS: Int64 = hasEnd ? 100_000 : 0
    let body = try json(tokenReply(alice, expiresInS: 1800))
    if hasEnd { body.set("expires_at", .int((rig.now.wallMS + aheadMS) / 1000 + 1800)) }
    // When
    try expect(rig.sessionStart.adopt(try TokenReply.read(body), ifGeneration: 0))
    // Then
    let row = try rig.sessions.row()
    expect(row.expiresMS, equals: rig.now.wallMS + aheadMS + 1_800_000)
    expect(row.validatedServerMS, equals: rig.now.wallMS + aheadMS)
    // And once it is known otherwise, the later of the two counts: no token comes from the future
    try rig.core.meta.set(.clockOffset, .int(7000))
    try expect(rig.sessionStart.adopt(try TokenReply.read(body), ifGeneration: row.generation))
    try expect(rig.sessions.row().validatedServerMS, equals: rig.now.wallMS + max(aheadMS, 7000))
  }

  @Test func theAgeOfAValidationBeginsAtZero() throws {
    let rig = try Rig.atHome()
    func age() throws -> Int64? { try rig.lifecycle.status([:]).int("validated_age_ms") }
    try expect(age(), equals: 0)
    // And the clocks count as equal until a response tells otherwise.
    try expect(rig.lifecycle.status([:]).int("clock_offset_ms"), equals: 0)
    rig.advance(5000, wallMS: -60_000)
    try expect(age(), equals: 5000)
  }
}
