public import Base
public import Vault

/// The result of a sign-in in the browser, as its callback URL tells it. Any app and any page can open
/// that URL, so it proves nothing by itself: the server compares the code with the verifier.
public enum Callback {
  case code(SecretBytes)
  /// `error` is the OAuth error, such as `access_denied`; code and description are for developers.
  case refused(error: String, code: String?, description: String?)
  /// Another URL than the expected redirect, or one without the parameters of a sign-in.
  case foreign

  /// The auth service puts the code into the query, and an error into the fragment or into both.
  public static func read(_ url: JSON, redirectURL: String) throws(Failure) -> Callback {
    guard let text = try SecretBytes.text(of: url) else { return .foreign }
    return try read(text, redirectURL: redirectURL)
  }

  public static func read(_ url: String, redirectURL: String) throws(Failure) -> Callback {
    try read(.string(url), redirectURL: redirectURL)
  }

  private static func read(_ url: SecretBytes, redirectURL: String) throws(Failure) -> Callback {
    defer { withExtendedLifetime(url) {} }
    var redirectURL = redirectURL
    guard let parts = URLParts(url.bytes),
      redirectURL.withUTF8({ text in
        URLParts(UnsafeRawBufferPointer(text)).map { parts.isSamePlace(as: $0) } ?? false
      })
    else { return .foreign }
    let query = try Parameters(parts.query)
    let fragment = try Parameters(parts.fragment)
    if let error = query.error ?? fragment.error {
      return .refused(
        error: text(of: error),
        code: (query.errorCode ?? fragment.errorCode).map { text(of: $0) },
        description: (query.description ?? fragment.description).map { text(of: $0) })
    }
    guard let code = query.code ?? fragment.code, code.count <= 1024,
      VisibleASCII.fills(code.bytes)
    else { return .foreign }
    return .code(code)
  }

  private static func text(of bytes: SecretBytes) -> String {
    String(decoding: bytes.bytes, as: UTF8.self)
  }

  /// The parameters that are read. Of several with the same name the last counts: the service adds
  /// its own after those of the redirect URL.
  private struct Parameters {
    var code: SecretBytes?
    var error: SecretBytes?
    var errorCode: SecretBytes?
    var description: SecretBytes?

    init(_ part: URLParts.Part?) throws(Failure) {
      guard let part else { return }
      var rest = part
      while !rest.isEmpty {
        let end = rest.firstIndex(of: UInt8(ascii: "&")) ?? rest.endIndex
        let pair = rest[..<end]
        rest = rest[end...].dropFirst()
        let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
        let value = equals < pair.endIndex ? pair[(equals + 1)...] : pair[equals...]
        switch Callback.text(of: try Percent.decode(pair[..<equals])) {
        case "code": code = try Percent.decode(value)
        case "error": error = try Percent.decode(value)
        case "error_code": errorCode = try Percent.decode(value)
        case "error_description": description = try Percent.decode(value)
        default: break
        }
      }
    }
  }
}
