import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing
import Vault

@testable import Engine

@Suite struct SignInTests {
  private static let methods =
    #","auth_methods":[{"id":"bankid","flow":"pkce"},{"id":"apple","flow":"id_token"},"#
    + #"{"id":"google","flow":"id_token"},{"id":"mail","flow":"password"}]"#

  @Test func anExchangeIsGivenUpAtItsDeadlineAndNotBefore() throws {
    // Given
    let rig = try Rig(config: Self.methods)
    _ = try rig.signInFlow.complete(["email": "a@b.no", "password": "p"])
    _ = try rig.takeEvents()
    // When, then
    rig.advance(59_999)
    try rig.signInFlow.expire(rig.now)
    expect(rig.pendingSignIn.pending != nil)
    // At the deadline a poll has work, though the server asked for a longer pause, and does it
    try rig.pauses.backOff(
      .signIn, try response(429, #"{"code":"over_request_rate_limit"}"#, retryAfter: "600"), rig.now
    )
    try expect(!rig.scheduler.hasWork(.all, rig.now))
    try expect(rig.scheduler.nextWakeMS(.all, rig.now), equals: 1)
    rig.advance(1)
    try expect(rig.scheduler.hasWork(.all, rig.now))
    try rig.signInFlow.expire(rig.now)
    expect(rig.pendingSignIn.pending == nil)
    try expect(
      rig.takeEvents().map { $0["screen"]?.string("reason") }, equals: ["sign_in_unreachable"])
  }
}
