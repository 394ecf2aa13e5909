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

  /// The parameters that are read. None may come twice (RFC 6749, section 3.1): which one counts would be
  /// a guess, and somebody may have added the other.
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
        case "code": try Parameters.take(value, into: &code, "code")
        case "error": try Parameters.take(value, into: &error, "error")
        case "error_code": try Parameters.take(value, into: &errorCode, "error_code")
        case "error_description":
          try Parameters.take(value, into: &description, "error_description")
        default: break
        }
      }
    }

    private static func take(
      _ value: URLParts.Part, into known: inout SecretBytes?, _ name: StaticCString
    ) throws(Failure) {
      guard known == nil else {
        throw Failure(
          .requestInvalidValue, "the parameter \(name.string) comes more than once",
          field: "/callback_url")
      }
      known = try Percent.decode(value)
    }
  }
}
