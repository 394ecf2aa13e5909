/// Why a session has ended: the closed list. Nothing else proves it.
public enum EndReason: String, CaseIterable, Sendable {
  /// Signed out elsewhere, or the session or its user was deleted.
  case notFound = "refresh_token_not_found"
  /// Outside the reuse interval; final only after storage was read again (SES-2).
  case alreadyUsed = "refresh_token_already_used"
  case sessionNotFound = "session_not_found"
  /// A limit that the server sets: absolute, inactivity, assurance, one session per user.
  case sessionExpired = "session_expired"
  case banned = "user_banned"
  case userNotFound = "user_not_found"
  /// Servers before v2.164.0 name no code.
  case invalidGrant = "invalid_grant"
}

/// What the answer to a refresh means.
public enum RefreshOutcome: Equatable, Sendable {
  /// There is a body to read; without its fields it counts as `transient`.
  case success
  /// The session has ended.
  case terminal(EndReason)
  /// Read storage again: another process may have stored a newer token. Without one it is
  /// `terminal(.alreadyUsed)`.
  case alreadyUsed
  /// The server does not take the stored token for one of its own. It need not be damaged here: a
  /// server restored from a backup says the same.
  case corrupt
  /// Keep the session, mark it stale, try again by back-off.
  case transient
  /// Refused for a reason that is on no list: `transient`, but counted (`Situation.denied`).
  case unknownRejection
}

/// What the answer to `GET /user` means.
public enum UserOutcome: Equatable, Sendable {
  case valid
  case terminal(EndReason)
  /// The access token has expired or its signing key changed: refresh once.
  case badJWT
  case transient
  case unknownRejection
}

/// What the answer to a sign-in means.
public enum SignInOutcome: Equatable, Sendable {
  /// There is a body to read.
  case success
  /// The server has forgotten the sign-in; it lives for 300 s at least.
  case expired
  /// The code was used before, or never was one.
  case notFound
  /// Refused; the server's code, for developers.
  case rejected(String)
  case transient
}

/// What the answer to a logout means.
public enum RevokeOutcome: Equatable, Sendable {
  /// The session is no more, by this or before.
  case done
  /// The access token no longer verifies: refresh, then log out with the new one.
  case needsToken
  case transient
}

/// What the auth service's answers mean. Sources: supabase/auth `internal/api/token_refresh.go`,
/// `internal/api/auth.go`, `internal/tokens/service.go`; measured on v2.196.0.
///
/// The code decides. Statuses of the same error have changed between versions; they count where
/// there is no code, and where they say that any refusal is passing.
public enum AuthClassification {
  /// `POST /token?grant_type=refresh_token`.
  public static func refresh(_ facts: ResponseFacts) -> RefreshOutcome {
    if facts.isSuccess { return facts.isServerJSON ? .success : .transient }
    guard facts.isServerJSON, !facts.isPassing else { return .transient }
    guard let code = facts.knownCode else { return withoutCode(facts) }
    switch code {
    case "refresh_token_not_found": return .terminal(.notFound)
    case "refresh_token_already_used": return .alreadyUsed
    case "session_not_found": return .terminal(.sessionNotFound)
    case "session_expired": return .terminal(.sessionExpired)
    case "user_banned": return .terminal(.banned)
    case "validation_failed": return .corrupt
    default: return isPassing(code) ? .transient : .unknownRejection
    }
  }

  /// `GET /user`. A success does not prove that the next refresh will succeed: the server checks
  /// the session's limits at refresh alone.
  public static func user(_ facts: ResponseFacts) -> UserOutcome {
    if facts.isSuccess { return facts.isServerJSON ? .valid : .transient }
    guard let code = facts.knownCode, !facts.isPassing else { return .transient }
    switch code {
    case "session_not_found": return .terminal(.sessionNotFound)
    case "user_not_found": return .terminal(.userNotFound)
    case "user_banned": return .terminal(.banned)
    case "bad_jwt": return .badJWT
    default: return isPassing(code) ? .transient : .unknownRejection
    }
  }

  /// `POST /token` with a PKCE code, an identity token or a password.
  public static func signIn(_ facts: ResponseFacts) -> SignInOutcome {
    if facts.isSuccess { return facts.isServerJSON ? .success : .transient }
    guard facts.isServerJSON, !facts.isPassing else { return .transient }
    guard let code = facts.knownCode else { return .rejected(facts.oauthError ?? "unknown") }
    switch code {
    case "flow_state_expired": return .expired
    case "flow_state_not_found": return .notFound
    default: return isPassing(code) ? .transient : .rejected(code)
    }
  }

  /// `POST /logout`. Success is 204 alone: it has no body that could be told from a portal's.
  public static func revoke(_ facts: ResponseFacts) -> RevokeOutcome {
    if facts.status == 204 { return .done }
    guard let code = facts.knownCode, !facts.isPassing else { return .transient }
    switch code {
    case "session_not_found", "user_not_found", "user_banned": return .done
    case "bad_jwt", "no_authorization": return .needsToken
    default: return .transient
    }
  }

  /// OAuth-style refusals and those of servers before v2.164.0. A body that names nothing is no
  /// proof of anything: gateways speak JSON too.
  private static func withoutCode(_ facts: ResponseFacts) -> RefreshOutcome {
    guard let error = facts.oauthError, !error.isEmpty else { return .transient }
    guard error == "invalid_grant" else { return .unknownRejection }
    return facts.describes("already used") ? .alreadyUsed : .terminal(.invalidGrant)
  }

  /// Codes whose cause passes, whatever the status: hooks time out with 422.
  private static func isPassing(_ code: String) -> Bool {
    switch code {
    case "conflict", "over_request_rate_limit", "request_timeout", "unexpected_failure": true
    default: ASCII.starts(code, "hook_timeout") || ASCII.starts(code, "over_")
    }
  }
}
