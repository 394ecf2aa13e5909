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

  private func password(over rig: Rig, deadlineMS: Int64 = 60_000) throws -> PendingSignIn {
    PendingSignIn(
      .password(email: "a", password: "b"), over: try rig.sessions.row(),
      deadlineMS: rig.now.monotonicMS + deadlineMS)
  }

  // MARK: Methods

  @Test func anIdentityTokenWithoutAMethodIsOfTheFirstOneThatTakesSuchTokens() throws {
    // Given
    let rig = try Rig(config: Self.methods)
    let nonce = try #require(
      try rig.signInFlow.begin(["method": "apple"]).string("nonce"))
    // When
    _ = try rig.signInFlow.complete(
      ["id_token": "token", "nonce": .string(nonce)], rig.decider)
    // Then
    expect(rig.news.takeScreen()?.string("reason"), equals: "signing_in")
    // Somebody is there, though nobody was let in.
    expect(rig.hostView.visit, equals: .outside)
    guard case .idToken(let provider, _, _) = rig.pendingSignIn.pending?.proof else {
      Issue.record("no sign-in is under way")
      return
    }
    expect(provider, equals: "apple")
  }

  @Test func aNonceServesItsOwnProviderAlone() throws {
    let rig = try Rig(config: Self.methods)
    let nonce = try #require(
      try rig.signInFlow.begin(["method": "google"]).string("nonce"))
    let code = try refusal {
      try rig.signInFlow.complete(
        ["id_token": "token", "nonce": .string(nonce), "method": "apple"], rig.decider)
    }
    expect(code, equals: .requestInvalidValue)
    expect(rig.pendingSignIn.pending == nil)
  }

  // MARK: Refusals

  @Test func aCallbackWithAnErrorEndsNoSignIn() throws {
    // Given
    let rig = try Rig(config: Self.methods)
    func complete(_ query: String) throws -> String? {
      _ = try rig.signInFlow.complete(
        ["callback_url": .string("app.example:/signed-in?\(query)")], rig.decider)
      return rig.news.takeScreen()?.string("reason")
    }
    try expect(refusal { try complete("error=access_denied") }, equals: .signInStateMismatch)
    _ = try rig.signInFlow.begin(["method": "bankid"])
    // When, then
    try expect(complete("error=access_denied"), equals: "sign_in_cancelled")
    try expect(complete("error=access_denied"), equals: "sign_in_cancelled")
    try expect(complete("code=c"), equals: "signing_in")
    // and it does not end an exchange either
    try expect(complete("error=access_denied"), equals: "signing_in")
    expect(rig.pendingSignIn.pending != nil)
  }

  @Test func withoutANetworkASignInIsAnsweredAtOnce() throws {
    let rig = try Rig(config: Self.methods)
    _ = try rig.signInFlow.begin(["method": "bankid"])
    func complete() throws -> String? {
      _ = try rig.signInFlow.complete(
        ["callback_url": "app.example:/signed-in?code=c"], rig.decider)
      return rig.news.takeScreen()?.string("reason")
    }
    _ = rig.reachability.setOnline(false)
    try expect(complete(), equals: "sign_in_offline")
    expect(rig.pendingSignIn.pending == nil)
    // And the same callback works with one
    _ = rig.reachability.setOnline(true)
    try expect(complete(), equals: "signing_in")
  }

  /// Why the exchange was not answered, and what the host is told.
  @Test(arguments: [
    ("offline", "sign_in_offline" as String?), ("dns", "sign_in_offline"),
    ("timeout", "signing_in"), ("refused", "signing_in"), ("cancelled", nil),
  ])
  func anExchangeThatFindsNoNetworkEnds(_ error: String, _ reason: String?) throws {
    let ends = reason == "sign_in_offline"
    // Given
    let rig = try Rig(config: Self.methods)
    _ = try rig.signInFlow.complete(["email": "a@b.no", "password": "p"], rig.decider)
    try rig.dispatch.send(try #require(try rig.scheduler.next(rig.now)), rig.now)
    let request = try #require(rig.inFlight.requests.last)
    _ = try rig.takeEvents()
    // When
    try rig.dispatch.finish(
      request,
      try HTTPResponse.read(
        try Fields(["error": .string(error)], known: ["status", "headers", "body", "error"]),
        nowMS: rig.now.wallMS), rig.now)
    // Then
    try expect(rig.takeEvents().last?["screen"]?.string("reason"), equals: reason)
    expect(rig.pendingSignIn.pending == nil, equals: ends)
    try expect(rig.pauses.leftMS(.signIn, rig.now) > 0, equals: !ends)
  }

  // MARK: Deadlines

  /// How long the user was in the browser, and what the callback is answered with.
  @Test(arguments: [
    (Int64(900_000), nil as ErrorCode?), (900_001, .signInExpired), (-900_000, nil),
    (-900_001, .signInExpired),
  ])
  func aSignInMayStayInTheBrowserForAQuarterOfAnHour(
    _ milliseconds: Int64, _ code: ErrorCode?
  ) throws {
    let rig = try Rig(config: Self.methods)
    try expect(rig.signInFlow.begin(["method": "bankid"]).string("url") != nil)
    // (A boot without an id has only the device's clock, which may be set back.)
    rig.advance(milliseconds)
    let found = try refusal {
      try rig.signInFlow.complete(
        ["callback_url": "app.example:/signed-in?code=c"], rig.decider)
    }
    expect(found, equals: code)
    expect(rig.pendingSignIn.pending != nil, equals: (code == nil))
  }

  @Test func anExchangeIsGivenUpAtItsDeadlineAndNotBefore() throws {
    // Given
    let rig = try Rig(config: Self.methods)
    _ = try rig.signInFlow.complete(["email": "a@b.no", "password": "p"], rig.decider)
    _ = try rig.takeEvents()
    // When, then
    rig.advance(59_999)
    try rig.signInFlow.expire(rig.now, rig.decider)
    expect(rig.pendingSignIn.pending != nil)
    // At the deadline a poll has work, though the server asked for a longer pause, and does it
    try rig.pauses.backOff(
      .signIn, try response(429, #"{"code":"over_request_rate_limit"}"#, retryAfter: "600"), rig.now
    )
    try expect(!rig.scheduler.hasWork(.all, rig.now))
    try expect(rig.scheduler.nextWakeMS(.all, rig.now), equals: 1)
    rig.advance(1)
    try expect(rig.scheduler.hasWork(.all, rig.now))
    try rig.signInFlow.expire(rig.now, rig.decider)
    expect(rig.pendingSignIn.pending == nil)
    try expect(
      rig.takeEvents().map { $0["screen"]?.string("reason") }, equals: ["sign_in_unreachable"])
  }

  // MARK: Callbacks

  /// A pending callback of another device, or nil.
  private func callback(_ code: String, over rig: Rig, returns: Bool = false) throws
    -> PendingSignIn
  {
    let text = try #require(try SecretBytes.text(of: .string(code)))
    return PendingSignIn(
      .pkce(code: text, verifiers: [text]), over: try rig.sessions.row(), returns: returns,
      deadlineMS: rig.now.monotonicMS)
  }

  @Test func aCallbackWaitsBehindWhatIsPendingAndTheOldestOfTooManyIsDropped() throws {
    let rig = try Rig(config: Self.methods)
    let state = PendingSignInState(rig.core.revision)
    let first = try password(over: rig)
    state.begin(first)
    let codes = try ["a", "b", "b", "c", "d", "e"].map { try callback($0, over: rig) }
    for one in codes { state.add(one) }
    expect(state.pending === first)
    for expected in [codes[1], codes[3], codes[4], codes[5]] {
      expect(state.advance(after: SignInFailure(reason: .signInForeign)))
      expect(state.pending === expected)
      state.add(expected)
    }
    expect(!state.advance(after: SignInFailure(reason: .signInForeign)))
    // A sign-in that the user chooses in the app replaces all of them
    state.add(codes[0])
    state.begin(first)
    expect(!state.advance(after: SignInFailure(reason: .signInForeign)))
  }

  @Test func theReasonThatIsToldIsTheUsersOwn() throws {
    let rig = try Rig(config: Self.methods)
    let state = PendingSignInState(rig.core.revision)
    // A wrong password, then a foreign callback
    state.begin(try password(over: rig))
    state.add(try callback("a", over: rig, returns: true))
    let password = SignInFailure(reason: .signInFailed, cause: .wrongPassword)
    expect(state.advance(after: password))
    expect(state.outcome(SignInFailure(reason: .signInForeign)), equals: password)
    // Callbacks only: one that proves nothing leads back
    state.end()
    for (reason, told) in [
      (Reason.signInForeign, nil as Reason?), (.signInExpired, nil), (.signInOffline, nil),
      (.signInFailed, .signInFailed),
    ] {
      state.add(try callback("a", over: rig, returns: true))
      expect(state.outcome(SignInFailure(reason: reason))?.reason, equals: told)
      state.end()
      state.add(try callback("a", over: rig))
      expect(state.outcome(SignInFailure(reason: reason))?.reason, equals: reason)
      state.end()
    }
    // Only the auth service's own refusal proves that the callback was this device's
    for cause in SignInCause.allCases {
      state.add(try callback("a", over: rig, returns: true))
      let told = state.outcome(SignInFailure(reason: .signInFailed, cause: cause))
      expect(told?.cause == cause, equals: cause.isOfAuthService)
      state.end()
    }
  }

  // MARK: Another session meanwhile

  /// What happens on the device between the exchange and its answer.
  @Test(arguments: ["another user signs in", "the same user signs in", "the session ends"])
  func aLateSignInIsRevokedAndReplacesNothing(_ event: String) throws {
    // Given Bob, who signs in over Alice's session, and another process
    let rig = try Rig.atHome()
    rig.pendingSignIn.begin(try password(over: rig))
    try rig.dispatch.send(try #require(try rig.scheduler.next(rig.now)), rig.now)
    let request = try #require(rig.inFlight.requests.first { $0.purpose == .signIn })
    let carol = UUID(high: 0xCA20_0000_0000_4000, low: 0x8000_0000_0000_0003)
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    rig.advance(1000)
    other.clock.set(rig.now)
    _ = try other.decider.assess(.navigate)
    switch event {
    case "another user signs in": try other.signIn(carol)
    case "the same user signs in": try other.signIn(alice)
    default: try other.sessions.clear(ended: nil)
    }
    let before = try rig.sessions.row()
    let orders = try rig.core.revocations.count()
    // When
    try rig.dispatch.finish(request, try response(200, tokenReply(bob)), rig.now)
    // Then the session that the server issued is ended there,
    try expect(rig.core.revocations.count(), equals: orders + 1)
    // the other one stays as it is,
    let after = try rig.sessions.row()
    expect(after.owner, equals: before.owner)
    expect(after.generation, equals: before.generation)
    expect(after.tokens, equals: before.tokens)
    // and the host waits for nothing
    expect(rig.pendingSignIn.pending == nil)
    if event == "the session ends" {
      try expect(
        rig.takeEvents().last?["screen"]?.string("reason"), equals: "sign_in_failed")
    }
  }
}
