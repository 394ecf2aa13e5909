/// The purpose of a request. The host sees it and may use it to decide what to send first.
public enum Purpose: String, CaseIterable, Sendable {
  case refresh
  case validate
  case membershipCheck = "guard"
  case upload
  case pull
  case summary
  case revoke
  case live
  case signIn = "sign_in"

  /// Whether the request goes to the auth service; all others go to the data service.
  public var isAuth: Bool {
    switch self {
    case .refresh, .validate, .revoke, .signIn: true
    case .membershipCheck, .upload, .pull, .summary, .live: false
    }
  }
}
