/// What a server answered, as far as a judgement needs it.
public final class ResponseFacts: Sendable {
  /// The HTTP status; 0 when there was no answer at all (offline, time-out, TLS, DNS).
  public let status: Int
  /// The string that the body names as `code` (data and new auth format) or `error_code` (old auth
  /// format, where `code` is a number). Nil when there is none, or the body is not the server's
  /// JSON.
  public let code: String?
  /// The body's `error`: OAuth-style answers of the auth service have no code.
  public let oauthError: String?
  /// The body's text for developers: `message`, `msg` or `error_description`. Never shown, never
  /// logged; it tells apart what shares a code.
  public let description: String?
  /// Whether the body is JSON. Gateways, captive portals and proxies send HTML, or nothing.
  public let isServerJSON: Bool

  public init(
    status: Int, code: String? = nil, oauthError: String? = nil, description: String? = nil,
    isServerJSON: Bool = false
  ) {
    self.status = status
    self.code = code
    self.oauthError = oauthError
    self.description = description
    self.isServerJSON = isServerJSON
  }

  /// There was no answer.
  public static var none: ResponseFacts { ResponseFacts(status: 0) }

  var isSuccess: Bool { status >= 200 && status < 300 }

  /// A refusal for a reason that may pass, whatever its body says: no answer, a redirect of a
  /// portal, a time-out, a conflict between requests, a rate limit, a fault of the server's.
  var isPassing: Bool {
    switch status {
    case 408, 409, 425, 429: true
    default: status < 400 || status >= 500
    }
  }

  /// The code of a body that is the server's; empty counts as none, for that is what the data
  /// service sends with 400 when its database has just stopped.
  var knownCode: String? {
    guard isServerJSON, let code, !code.isEmpty else { return nil }
    return code
  }

  func describes(_ words: StaticString) -> Bool {
    guard let description else { return false }
    return ASCII.contains(description, words)
  }
}
