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

  /// The most values in a response. A larger response is not read: each value takes up to 300 bytes
  /// of memory. Of the rows of a pull only one at a time does.
  public var mostValues: Int {
    switch self {
    case .pull: 1_048_576
    case .upload, .membershipCheck: 131_072
    case .refresh, .validate, .summary, .revoke, .live, .signIn: 8192
    }
  }

  /// Whether the request goes to the auth service; all others go to the data service.
  public var isAuth: Bool {
    switch self {
    case .refresh, .validate, .revoke, .signIn: true
    case .membershipCheck, .upload, .pull, .summary, .live: false
    }
  }
}
