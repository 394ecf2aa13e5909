import Base

/// Why a sign-in failed, as far as the response tells. The raw values are codes of the C API.
public enum SignInCause: String, CaseIterable, Sendable {
  case wrongPassword = "wrong_password"
  case unconfirmedAddress = "unconfirmed_address"
  case providerDisabled = "provider_disabled"
  case userBanned = "user_banned"
  /// The server took the proof, and its answer did not arrive: the proof is used up.
  case answerLost = "answer_lost"
  case wrongAPIKey = "wrong_api_key"
  case wrongURL = "wrong_url"
  /// The response is no answer of the auth service: a captive portal's page, another server's JSON.
  case notSupabase = "not_supabase"
  case projectPaused = "project_paused"
  /// The server issued a session, and the device's key store did not save its keys.
  case keyStore = "key_store"
  /// The server issued a session with a token that is too long to be used (`TokenReply`).
  case tokenTooLong = "token_too_long"
  /// No response came: nothing listens there, or the name, the certificate or the time is at fault.
  case refused, dns, tls, timeout

  /// Whether the auth service itself refused the sign-in, or accepted it. The others stopped the request
  /// before it.
  public var isOfAuthService: Bool {
    switch self {
    case .wrongPassword, .unconfirmedAddress, .providerDisabled, .userBanned, .answerLost,
      .keyStore, .tokenTooLong:
      true
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

  /// The message of the same code. nil: the text of the reason says it to the user.
  public var messageCode: MessageCode? { MessageCode(rawValue: rawValue) }
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
    case "user_banned": return .userBanned
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
    if facts.status == 405 || facts.status == 501 { return .notSupabase }
    return facts.status >= 400 && facts.status < 500 && !facts.isServerJSON ? .notSupabase : nil
  }

  /// Why an answer to another request does not come from the service: the key, the address, or something
  /// on the way; nil when it may be the service's. A gateway refuses a key without an error code, and a
  /// rate limit, a conflict or a size prove nothing about the address.
  public static func obstacle(_ facts: ResponseFacts) -> SignInCause? {
    switch facts.status {
    case 200..<300: return facts.isServerJSON || facts.status == 204 ? nil : .notSupabase
    case 408, 409, 413, 416, 425, 429: return nil
    case _ where facts.knownCode != nil: return nil
    default: break
    }
    return signInCause(facts).flatMap { $0.isOfAuthService ? nil : $0 }
  }

  /// Whether the response itself says that another try is of no use, though it is not the auth
  /// service's own: the project is paused, or the server has no such path (404), takes no POST there
  /// (405) or nowhere (501).
  static func endsSignIn(_ facts: ResponseFacts) -> Bool {
    switch facts.status {
    case 404, 405, 501, pausedStatus: true
    default: false
    }
  }
}
