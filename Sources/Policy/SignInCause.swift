import Base

/// Why a sign-in failed, as far as the response tells. The raw values are codes of the C API.
public enum SignInCause: String, CaseIterable, Sendable {
  case wrongPassword = "wrong_password"
  case unconfirmedAddress = "unconfirmed_address"
  case providerDisabled = "provider_disabled"
  case wrongAPIKey = "wrong_api_key"
  case wrongURL = "wrong_url"
  /// The response is no answer of the auth service: a captive portal's page, another server's JSON.
  case notSupabase = "not_supabase"
  case projectPaused = "project_paused"
  /// No response came: nothing listens there, or the name, the certificate or the time is at fault.
  case refused, dns, tls, timeout

  /// Whether the auth service itself refused the sign-in. The others stopped the request before it.
  public var isOfAuthService: Bool {
    switch self {
    case .wrongPassword, .unconfirmedAddress, .providerDisabled: true
    case .wrongAPIKey, .wrongURL, .notSupabase, .projectPaused, .refused, .dns, .tls, .timeout:
      false
    }
  }

  /// Whether no response came.
  public var isSilence: Bool {
    switch self {
    case .refused, .dns, .tls, .timeout: true
    default: false
    }
  }

  /// nil: the text of the reason says it to the user.
  public var messageCode: MessageCode? {
    switch self {
    case .wrongPassword: .wrongPassword
    case .unconfirmedAddress: .unconfirmedAddress
    case .providerDisabled: .providerDisabled
    case .wrongAPIKey: .wrongAPIKey
    case .wrongURL: .wrongURL
    case .notSupabase: .notSupabase
    case .projectPaused: .projectPaused
    case .refused, .dns, .tls, .timeout: nil
    }
  }
}

extension AuthClassification {
  /// The status of Supabase's gateway for a project that is paused.
  private static var pausedStatus: Int { 540 }

  /// Why the sign-in failed that this response answers; nil when the response does not tell.
  ///
  /// The auth service refuses a sign-in with 400, 403 or 422, so 401 comes from the gateway, which
  /// knows no such key, and 404 without a code from a server that has no such path. 404 with a code of
  /// the data service proves that the request went there.
  public static func signInCause(_ facts: ResponseFacts) -> SignInCause? {
    if facts.status == pausedStatus { return .projectPaused }
    if facts.status >= 200, facts.status < 400 { return .notSupabase }
    if facts.isServerJSON, facts.status == 401 { return .wrongAPIKey }
    switch facts.knownCode {
    case "invalid_credentials": return .wrongPassword
    case "email_not_confirmed", "phone_not_confirmed": return .unconfirmedAddress
    case "provider_disabled", "email_provider_disabled", "phone_provider_disabled":
      return .providerDisabled
    case "validation_failed":
      return facts.describes("provider is not enabled") ? .providerDisabled : nil
    case .some(let code):
      return facts.status == 404 && code.utf8.starts(with: "PGRST".utf8) ? .wrongURL : nil
    case nil: break
    }
    if facts.oauthError == "invalid_grant" {
      if facts.describes("invalid login credentials") { return .wrongPassword }
      return facts.describes("not confirmed") ? .unconfirmedAddress : nil
    }
    if facts.status == 404 { return .wrongURL }
    return facts.status >= 400 && facts.status < 500 && !facts.isServerJSON ? .notSupabase : nil
  }

  /// Whether the response itself says that another try is of no use, though it is not the auth
  /// service's own.
  static func endsSignIn(_ facts: ResponseFacts) -> Bool {
    facts.status == pausedStatus || facts.status == 404
  }
}
