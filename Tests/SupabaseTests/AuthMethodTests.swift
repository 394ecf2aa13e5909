import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct AuthMethodTests {
  private func methods(_ config: String) throws(Failure) -> [AuthMethod] {
    try AuthMethod.readAll(try Fields(try json(config), known: ["auth_methods"]))
  }

  private func refused(_ list: String) -> String? {
    refusal { () throws(Failure) in try methods(#"{"auth_methods":\#(list)}"#) }
  }

  @Test("The default is a password; BankID and Vipps have their labels")
  func defaults() throws {
    let standard = try methods("{}")
    expect(standard.map { $0.id }, equals: ["password"])
    expect(standard.map { $0.flow }, equals: [.password])
    let browser = try methods(
      #"{"auth_methods":[{"id":"bankid","flow":"pkce"},{"id":"vipps","flow":"pkce"}]}"#)
    expect(browser.map { $0.label }, equals: ["BankID", "Vipps"])
    expect(browser.allSatisfy { $0.provider == $0.id })
  }

  @Test("Each method has its configured form; provider and label default to the id's")
  func own() throws {
    let methods = try methods(
      #"{"auth_methods":[{"id":"vipps","provider":"custom:vipps","flow":"id_token"},"#
        + #"{"id":"email","flow":"password","label":"E-post"},{"id":"x","flow":"pkce"}]}"#)
    expect(methods.map { $0.provider }, equals: ["custom:vipps", "email", "x"])
    expect(methods.map { $0.label }, equals: ["Vipps", "E-post", "x"])
    expect(methods.map { $0.flow }, equals: [.idToken, .password, .pkce])
    try expect(self.methods(#"{"auth_methods":[]}"#).isEmpty)
  }

  @Test("Every failure names its field")
  func mistakes() {
    expect(refused("{}"), equals: "request.wrong_type /auth_methods")
    expect(refused("[7]"), equals: "request.wrong_type /auth_methods/0")
    expect(refused(#"[{"flow":"pkce"}]"#), equals: "request.missing_field /auth_methods/0/id")
    expect(refused(#"[{"id":"a"}]"#), equals: "request.missing_field /auth_methods/0/flow")
    expect(
      refused(#"[{"id":"a","flow":"oauth"}]"#), equals: "request.invalid_value /auth_methods/0/flow"
    )
    expect(
      refused(#"[{"id":"a","flow":"pkce"},{"id":"a","flow":"password"}]"#),
      equals: "request.invalid_value /auth_methods/1/id")
    expect(
      refused(#"[{"id":"a","flow":"pkce","provider":"a b"}]"#),
      equals: "request.invalid_value /auth_methods/0/provider")
    expect(
      refused(#"[{"id":"a","flow":"pkce","icon":"a"}]"#),
      equals: "request.unknown_field /auth_methods/0/icon")
  }
}
