public import Base

/// A way to sign in.
public struct AuthMethod {
  public enum Flow: String, CaseIterable, Sendable {
    /// In a browser, which returns by a redirect.
    case pkce
    /// With an identity token that the host got from the provider's own software.
    case idToken = "id_token"
    case password
  }

  public var id: String
  /// The auth service's name of the provider.
  public var provider: String
  public var label: String
  public var flow: Flow

  /// In a function of its own: Embedded Swift 6.3 takes one of two array literals for the other.
  @inline(never)
  private static var standard: [AuthMethod] {
    [AuthMethod(id: "password", provider: "password", label: "password", flow: .password)]
  }

  /// The label of a method that the configuration gives none.
  private static func label(of id: String) -> String {
    switch id {
    case "bankid": "BankID"
    case "vipps": "Vipps"
    default: id
    }
  }

  /// The member `auth_methods` of the config.
  public static func readAll(_ config: Fields) throws(Failure) -> [AuthMethod] {
    guard let list = try config.array(ifPresent: "auth_methods") else { return standard }
    var result: [AuthMethod] = []
    for (index, element) in list.enumerated() {
      let fields = try Fields(
        element, at: "\(config.pointer("auth_methods"))/\(index)",
        known: ["id", "provider", "flow", "label"])
      let method = try read(fields)
      guard !result.contains(where: { $0.id == method.id }) else {
        throw fields.invalid("id", "the same id twice")
      }
      result.append(method)
    }
    return result
  }

  private static func read(_ fields: Fields) throws(Failure) -> AuthMethod {
    let id = try fields.string("id", maximum: 64)
    let provider = try fields.string(ifPresent: "provider", maximum: 128) ?? id
    guard VisibleASCII.fills(provider.utf8) else {
      throw fields.invalid("provider", "visible ASCII characters are expected")
    }
    return AuthMethod(
      id: id, provider: provider,
      label: try fields.string(ifPresent: "label", maximum: 200) ?? label(of: id),
      flow: try fields.choice("flow", Flow.self))
  }
}
