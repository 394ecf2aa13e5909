import Base

/// The facts of a server's response that its classification depends on.
public final class ResponseFacts: Sendable {
  /// The HTTP status; 0 when there was no response (offline, time-out, TLS, DNS).
  public let status: Int
  /// The body's `code` (data service and new auth format) or `error_code` (old auth format, where
  /// `code` is a number). Nil when the body has none or is not JSON.
  public let code: String?
  /// The body's `error`. OAuth errors of the auth service have this instead of a code.
  public let oauthError: String?
  /// The body's text for developers: `message`, `msg` or `error_description`. It tells apart errors
  /// that share a code. It is never shown and never logged.
  public let description: String?
  /// Whether the body is JSON. Gateways, captive portals and proxies send HTML or nothing.
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

  /// No response came.
  public static var none: ResponseFacts { ResponseFacts(status: 0) }

  var isSuccess: Bool { status >= 200 && status < 300 }

  /// Whether the status alone says that the cause may pass: no response, a portal's redirect, a
  /// proxy that wants a password, a time-out, a conflict between requests, a rate limit, a fault of the server.
  var isPassing: Bool {
    switch status {
    case 407, 408, 409, 425, 429: true
    default: status < 400 || status >= 500
    }
  }

  /// The data service sends an empty code with 400 when its database has just stopped.
  var hasEmptyCode: Bool { isServerJSON && code == "" }

  /// The code of a JSON body. An empty code counts as none.
  var knownCode: String? {
    guard isServerJSON, let code, !code.isEmpty else { return nil }
    return code
  }

  /// The code, if it has the form of the auth service's: another text could hold anything.
  public var plainCode: String? {
    guard let code, !code.isEmpty, code.utf8.count <= 63 else { return nil }
    for byte in code.utf8 where byte != UInt8(ascii: "_") && !ASCII.isLetter(byte) {
      return nil
    }
    return code
  }

  /// Whether `description` contains `words`, without regard to case.
  func describes(_ words: StaticString) -> Bool {
    guard let description else { return false }
    return ASCII.contains(description, words)
  }
}
