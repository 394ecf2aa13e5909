public import Base

/// The URL to which the browser returns after a sign-in.
///
/// The operating system delivers it to the app. A scheme that is not this app's own, such as a short
/// word, may be another app's as well, and then that app receives the answer (RFC 8252, section 7.1).
public enum RedirectURL {
  /// The member `redirect_url` of the config. Sign-ins in a browser require it.
  public static func read(
    _ config: Fields, for methods: [AuthMethod]
  ) throws(Failure) -> String? {
    guard var url = try config.string(ifPresent: "redirect_url", maximum: 2048) else {
      let returning = methods.filter { $0.flow == .pkce }
      guard returning.isEmpty else { throw missing(config, for: returning) }
      return nil
    }
    if let problem = url.withUTF8({ fault(UnsafeRawBufferPointer($0)) }) {
      throw config.invalid("redirect_url", problem)
    }
    return url
  }

  /// Says which methods need it.
  private static func missing(_ config: Fields, for methods: [AuthMethod]) -> Failure {
    let names = methods.map { "\"\($0.id)\"" }.joined(separator: ", ")
    let advice =
      "these of auth_methods sign in in a browser, which returns to this URL: \(names); "
      + "methods with the flow password or id_token need none"
    return Failure(.requestMissingField, advice, field: config.pointer("redirect_url"))
  }

  /// What is wrong with the URL; nil: https with a host, http on this machine, or a reverse-domain scheme
  /// with a path or a host.
  private static func fault(_ url: UnsafeRawBufferPointer) -> StaticCString? {
    let other: StaticCString =
      "https, a scheme like com.example.app:/, or http on this machine is expected"
    guard VisibleASCII.fills(url), let parts = URLParts(url) else { return other }
    if parts.fragment != nil { return "a fragment carries no answer: leave it out" }
    if parts.hasAnswer { return "its query holds a code or an error, as an answer does" }
    let isUsable =
      switch parts.schemeName {
      case "https": parts.hasHost
      case "http": parts.hasHost && parts.isLoopback
      default: parts.hasReverseDomainScheme && parts.leadsSomewhere
      }
    return isUsable ? nil : other
  }
}

extension URLParts {
  /// The scheme in lower case.
  fileprivate var schemeName: String {
    String(decoding: scheme.map { ASCII.lowered($0) }, as: UTF8.self)
  }

  /// Whether the scheme is the app's own: labels with dots between them, as in com.example.app.
  fileprivate var hasReverseDomainScheme: Bool {
    let labels = scheme.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return labels.count > 1
      && labels.allSatisfy { label in
        !label.isEmpty && !label.contains(UInt8(ascii: "+"))
      }
  }

  /// Whether the query has one of the parameters that `Callback` reads.
  fileprivate var hasAnswer: Bool {
    query?.split(separator: UInt8(ascii: "&")).contains { pair in
      let name = pair.prefix { $0 != UInt8(ascii: "=") }
      return name.elementsEqual("code".utf8) || name.starts(with: "error".utf8)
    } ?? false
  }

  /// Whether a host or a path from the root follows the scheme.
  fileprivate var leadsSomewhere: Bool {
    if authority == nil { return path.first == UInt8(ascii: "/") }
    return hasHost || authority?.isEmpty == true && path.count > 1
  }
}
