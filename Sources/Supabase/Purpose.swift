/// What a request is for: the host sees it, and may weigh by it what to send first.
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

  /// Whether the auth service answers it; the data service answers all others.
  public var isAuth: Bool {
    switch self {
    case .refresh, .validate, .revoke, .signIn: true
    case .membershipCheck, .upload, .pull, .summary, .live: false
    }
  }
}
