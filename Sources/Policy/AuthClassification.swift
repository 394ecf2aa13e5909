import Base

/// Why the server ended a session. The list is closed: no other code proves the end of a session.
public enum EndReason: String, CaseIterable, Sendable {
  /// Signed out elsewhere, or the session or its user was deleted.
  case notFound = "refresh_token_not_found"
  /// The token was used outside the reuse interval. It proves the end of the session that sent it, and not of
  /// one that another process has stored meanwhile (SES-2).
  case alreadyUsed = "refresh_token_already_used"
  case sessionNotFound = "session_not_found"
  /// The session reached a limit of the server: its total time, inactivity, assurance level, or one
  /// session per user.
  case sessionExpired = "session_expired"
  case banned = "user_banned"
  case userNotFound = "user_not_found"
  /// The answer of servers before v2.164.0, which send no error code.
  case invalidGrant = "invalid_grant"
}

/// The meaning of the response to a refresh.
public enum RefreshOutcome: Equatable, Sendable {
  /// The body holds the new tokens. If it lacks a field, the outcome is `transient`.
  case success
  /// The session has ended.
  case terminal(EndReason)
  /// Keep the session, mark it stale, and try again after a pause. So is a refusal with a code
  /// that is not on the list of `EndReason`: a portal or a firewall may have sent it. `validation_failed`
  /// is not on it: a server that was restored from a backup says so of a token that it issued before.
  case transient
}

/// The meaning of the response to `GET /user`.
public enum UserOutcome: Equatable, Sendable {
  case valid
  case terminal(EndReason)
  /// The access token has expired or its signing key changed: refresh once.
  case badJWT
  /// No proof of an end, whatever the code.
  case transient
}

/// The meaning of the response to a sign-in.
public enum SignInOutcome: Equatable, Sendable {
  /// The body holds the tokens.
  case success
  /// The server no longer knows the sign-in. It keeps one for at least 300 s.
  case expired
  /// The code was used before, or the server never issued it.
  case notFound
  /// The code was issued for another verifier, and stays usable with that one: the server compares them
  /// before it uses the code up.
  case foreign
  /// Refused, with the server's code for developers.
  case rejected(String)
  case transient
}

/// The meaning of the response to a logout.
public enum RevokeOutcome: Equatable, Sendable {
  /// The session has ended, now or earlier.
  case done
  /// The access token is no longer valid: refresh, then log out with the new token.
  case needsToken
  case transient
}

/// Classifies the responses of the auth service.
///
/// The rules are applied in this order:
/// 1. A success needs a JSON body; without it, the response comes from a gateway and is transient.
/// 2. A status that says that the cause will pass (407, 408, 409, 425, 429, 5xx) makes it transient.
/// 3. The error code decides. The status does not: for the same error it differs between versions.
/// 4. Without a code, the OAuth `error` decides, as older servers send it.
/// 5. Anything else never ends a session.
///
/// Sources: supabase/auth `internal/api/token_refresh.go`, `internal/api/auth.go`,
/// `internal/tokens/service.go`; measured on v2.196.0.
public enum AuthClassification {
  /// `POST /token?grant_type=refresh_token`.
  public static func refresh(_ facts: ResponseFacts) -> RefreshOutcome {
    if facts.isSuccess { return facts.isServerJSON ? .success : .transient }
    guard facts.isServerJSON, !facts.isPassing else { return .transient }
    guard let code = facts.knownCode else { return withoutCode(facts) }
    switch code {
    case "refresh_token_not_found": return .terminal(.notFound)
    case "refresh_token_already_used": return .terminal(.alreadyUsed)
    case "session_not_found": return .terminal(.sessionNotFound)
    case "session_expired": return .terminal(.sessionExpired)
    case "user_banned": return .terminal(.banned)
    default: return .transient
    }
  }

  /// `GET /user`. A success does not prove that the next refresh will succeed: the server checks
  /// the limits of the session only at a refresh.
  public static func user(_ facts: ResponseFacts) -> UserOutcome {
    if facts.isSuccess { return facts.isServerJSON ? .valid : .transient }
    guard let code = facts.knownCode, !facts.isPassing else { return .transient }
    switch code {
    case "session_not_found": return .terminal(.sessionNotFound)
    case "user_not_found": return .terminal(.userNotFound)
    case "user_banned": return .terminal(.banned)
    case "bad_jwt": return .badJWT
    default: return .transient
    }
  }

  /// `POST /token` with a PKCE code, an identity token or a password.
  public static func signIn(_ facts: ResponseFacts) -> SignInOutcome {
    if facts.isSuccess { return facts.isServerJSON ? .success : .transient }
    guard facts.isServerJSON && !facts.isPassing || endsSignIn(facts) else { return .transient }
    guard let code = facts.knownCode else {
      if facts.describes("code challenge does not match") { return .foreign }
      return .rejected(facts.oauthError ?? "unknown")
    }
    switch code {
    case "flow_state_expired": return .expired
    case "flow_state_not_found": return .notFound
    case "bad_code_verifier": return .foreign
    default: return isPassing(code) ? .transient : .rejected(code)
    }
  }

  /// `POST /logout`. Only 204 is a success: any other success status has a body, which a captive
  /// portal may have sent.
  public static func revoke(_ facts: ResponseFacts) -> RevokeOutcome {
    if facts.status == 204 { return .done }
    guard let code = facts.knownCode, !facts.isPassing else { return .transient }
    switch code {
    case "session_not_found", "user_not_found", "user_banned": return .done
    case "bad_jwt", "no_authorization": return .needsToken
    default: return .transient
    }
  }

  /// Whether the response is the auth service's own, and not a gateway's or a captive portal's: it
  /// has one of the codes that the auth service answers with.
  public static func isOwn(_ facts: ResponseFacts) -> Bool {
    guard let code = facts.knownCode else { return false }
    switch code {
    case "refresh_token_not_found", "refresh_token_already_used", "session_not_found",
      "session_expired", "user_banned", "user_not_found", "bad_jwt", "no_authorization",
      "validation_failed", "flow_state_expired", "flow_state_not_found":
      return true
    default: return isPassing(code)
    }
  }

  /// Classifies OAuth errors and those of servers before v2.164.0. A JSON body without an error
  /// name proves nothing, because gateways send JSON too.
  private static func withoutCode(_ facts: ResponseFacts) -> RefreshOutcome {
    guard facts.oauthError == "invalid_grant" else { return .transient }
    return .terminal(facts.describes("already used") ? .alreadyUsed : .invalidGrant)
  }

  /// Whether the cause of this code will pass, whatever the status: for example, a hook that timed
  /// out is answered with 422.
  private static func isPassing(_ code: String) -> Bool {
    switch code {
    case "conflict", "over_request_rate_limit", "request_timeout", "unexpected_failure": true
    default: ASCII.starts(code, "hook_timeout") || ASCII.starts(code, "over_")
    }
  }
}
