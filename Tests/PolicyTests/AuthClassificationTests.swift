import Policy
import TestSupport
import Testing

/// Responses of the auth service as measured on v2.196.0, and responses of gateways.
@Suite struct AuthClassificationTests {
  private func json(_ status: Int, _ code: String?, error: String? = nil) -> ResponseFacts {
    ResponseFacts(status: status, code: code, oauthError: error, isServerJSON: true)
  }

  @Test(
    "SES-2: refresh ends the session for the codes of the closed list",
    arguments: [
      ("refresh_token_not_found", RefreshOutcome.terminal(.notFound)),
      ("refresh_token_already_used", .terminal(.alreadyUsed)),
      ("session_not_found", .terminal(.sessionNotFound)),
      ("session_expired", .terminal(.sessionExpired)),
      ("user_banned", .terminal(.banned)),
    ])
  func refreshTerminal(code: String, outcome: RefreshOutcome) {
    expect(AuthClassification.refresh(json(400, code)), equals: outcome)
    // The status of the same error differs between versions.
    expect(AuthClassification.refresh(json(403, code)), equals: outcome)
    // A code outside a JSON body proves nothing, nor does a server fault.
    expect(AuthClassification.refresh(ResponseFacts(status: 400, code: code)), equals: .transient)
    expect(AuthClassification.refresh(json(500, code)), equals: .transient)
    expect(AuthClassification.refresh(json(429, code)), equals: .transient)
    expect(AuthClassification.refresh(json(407, code)), equals: .transient)
  }

  @Test(
    "SES-1: refresh keeps the session for every cause that may pass",
    arguments: [
      ResponseFacts.none, ResponseFacts(status: 200), ResponseFacts(status: 302),
      ResponseFacts(status: 400),
      ResponseFacts(status: 403), ResponseFacts(status: 404), ResponseFacts(status: 408),
      ResponseFacts(status: 502),
      ResponseFacts(status: 503), ResponseFacts(status: 522),
      ResponseFacts(status: 409, code: "conflict", isServerJSON: true),
      ResponseFacts(status: 422, code: "hook_timeout", isServerJSON: true),
      ResponseFacts(status: 422, code: "hook_timeout_after_retry", isServerJSON: true),
      ResponseFacts(status: 429, code: "over_request_rate_limit", isServerJSON: true),
      ResponseFacts(status: 500, code: "unexpected_failure", isServerJSON: true),
      ResponseFacts(status: 504, code: "request_timeout", isServerJSON: true),
      ResponseFacts(status: 401, isServerJSON: true),
      ResponseFacts(status: 400, code: "", isServerJSON: true),
    ])
  func refreshTransient(answer: ResponseFacts) {
    expect(AuthClassification.refresh(answer), equals: .transient)
    expect(AuthClassification.user(answer), equals: .transient)
    expect(AuthClassification.revoke(answer), equals: .transient)
  }

  @Test("A6: a code that is not on the closed list is no proof of an end")
  func refreshUnknown() {
    for code in [
      "bad_json", "unknown", "captcha_failed", "user_not_found", "bad_jwt", "validation_failed",
    ] {
      for status in [400, 401, 403, 422] {
        expect(AuthClassification.refresh(json(status, code)), equals: .transient)
      }
    }
    expect(
      AuthClassification.refresh(json(400, nil, error: "invalid_client")), equals: .transient)
  }

  @Test("Refresh reads the responses of servers before v2.164.0")
  func refreshOldServers() {
    func outcome(_ description: String?, isServerJSON: Bool = true) -> RefreshOutcome {
      AuthClassification.refresh(
        ResponseFacts(
          status: 400, oauthError: "invalid_grant", description: description,
          isServerJSON: isServerJSON))
    }
    expect(outcome(nil), equals: .terminal(.invalidGrant))
    expect(outcome("Invalid Refresh Token: Already Used"), equals: .terminal(.alreadyUsed))
    let notFound = "Invalid Refresh Token: Refresh Token Not Found"
    expect(outcome(notFound), equals: .terminal(.invalidGrant))
    expect(outcome(notFound, isServerJSON: false), equals: .transient)
  }

  @Test("Refresh succeeds only with a JSON body")
  func refreshSuccess() {
    expect(AuthClassification.refresh(json(200, nil)), equals: .success)
    expect(AuthClassification.refresh(ResponseFacts(status: 200)), equals: .transient)
  }

  @Test(
    "KEEP-7: GET /user ends the session for the codes of the closed list",
    arguments: [
      (403, "session_not_found", UserOutcome.terminal(.sessionNotFound)),
      (403, "user_not_found", .terminal(.userNotFound)), (403, "user_banned", .terminal(.banned)),
      (403, "bad_jwt", .badJWT), (400, "bad_jwt", .badJWT),
      (401, "no_authorization", .transient), (400, "validation_failed", .transient),
      (403, "session_expired", .transient), (500, "user_banned", .transient),
    ])
  func user(status: Int, code: String, outcome: UserOutcome) {
    expect(AuthClassification.user(json(status, code)), equals: outcome)
    expect(AuthClassification.user(ResponseFacts(status: status, code: code)), equals: .transient)
  }

  @Test("GET /user confirms only with a JSON body, not with a portal's page")
  func userValid() {
    expect(AuthClassification.user(json(200, nil)), equals: .valid)
    expect(AuthClassification.user(ResponseFacts(status: 200)), equals: .transient)
  }

  @Test(
    "SES-13: a sign-in that the server forgot, refused or could not process",
    arguments: [
      (422, "flow_state_expired", SignInOutcome.expired),
      (404, "flow_state_not_found", .notFound),
      (400, "bad_code_verifier", .foreign),
      (400, "invalid_credentials", .rejected("invalid_credentials")),
      (400, "user_banned", .rejected("user_banned")),
      (429, "over_request_rate_limit", .transient), (422, "hook_timeout", .transient),
      (500, "unexpected_failure", .transient),
    ])
  func signIn(status: Int, code: String, outcome: SignInOutcome) {
    expect(AuthClassification.signIn(json(status, code)), equals: outcome)
  }

  @Test("A sign-in refused by an OAuth error, or without any")
  func signInOAuth() {
    expect(
      AuthClassification.signIn(json(400, nil, error: "invalid nonce")),
      equals: .rejected("invalid nonce"))
    expect(AuthClassification.signIn(json(401, nil)), equals: .rejected("unknown"))
    // Servers before v2.164.0 say only in the text that the verifier is another one
    expect(
      AuthClassification.signIn(
        ResponseFacts(
          status: 400,
          description: "code challenge does not match previously saved code verifier",
          isServerJSON: true)), equals: .foreign)
    expect(AuthClassification.signIn(ResponseFacts(status: 403)), equals: .transient)
    expect(AuthClassification.signIn(json(200, nil)), equals: .success)
    expect(AuthClassification.signIn(ResponseFacts(status: 200)), equals: .transient)
  }

  @Test(
    "HST-4: the cause of a failed sign-in",
    arguments: [
      (400, "invalid_credentials", SignInCause.wrongPassword),
      (400, "email_not_confirmed", .unconfirmedAddress),
      (400, "phone_not_confirmed", .unconfirmedAddress),
      (400, "provider_disabled", .providerDisabled),
      (422, "phone_provider_disabled", .providerDisabled),
      (401, nil, .wrongAPIKey), (401, "UNAUTHORIZED", .wrongAPIKey), (404, nil, .wrongURL),
      (540, nil, .projectPaused), (200, nil, .notSupabase),
      (405, nil, .notSupabase), (501, nil, .notSupabase), (405, "PGRST101", nil),
      (400, nil, nil), (400, "validation_failed", nil), (429, "over_request_rate_limit", nil),
      (404, "flow_state_not_found", nil), (500, "unexpected_failure", nil), (403, nil, nil),
    ] as [(Int, String?, SignInCause?)])
  func signInCause(status: Int, code: String?, cause: SignInCause?) {
    expect(AuthClassification.signInCause(json(status, code)), equals: cause)
  }

  @Test("HST-4: a page or a silence instead of an answer")
  func signInPage() {
    func cause(_ status: Int) -> SignInCause? {
      AuthClassification.signInCause(ResponseFacts(status: status))
    }
    expect(cause(0), equals: nil)
    expect(cause(302), equals: .notSupabase)
    expect(cause(403), equals: .notSupabase)
    expect(cause(404), equals: .wrongURL)
    expect(cause(502), equals: nil)
    expect(cause(540), equals: .projectPaused)
    // Only what another try cannot change ends the sign-in at once
    expect(cause(405), equals: .notSupabase)
    expect(cause(501), equals: .notSupabase)
    for status in [404, 405, 501, 540] {
      expect(AuthClassification.signIn(ResponseFacts(status: status)), equals: .rejected("unknown"))
    }
    for status in [0, 200, 302, 401, 403, 502] {
      expect(AuthClassification.signIn(ResponseFacts(status: status)), equals: .transient)
    }
  }

  @Test("SES-8: a logout is done when the session has ended, now or earlier")
  func revoke() {
    expect(AuthClassification.revoke(ResponseFacts(status: 204)), equals: .done)
    expect(AuthClassification.revoke(ResponseFacts(status: 200)), equals: .transient)
    expect(AuthClassification.revoke(json(200, nil)), equals: .transient)
    expect(AuthClassification.revoke(json(403, "session_not_found")), equals: .done)
    expect(AuthClassification.revoke(json(403, "user_not_found")), equals: .done)
    expect(AuthClassification.revoke(json(403, "bad_jwt")), equals: .needsToken)
    expect(AuthClassification.revoke(json(401, "no_authorization")), equals: .needsToken)
    expect(AuthClassification.revoke(json(500, "unexpected_failure")), equals: .transient)
  }
}
