import Base
import Testing

@testable import Supabase

@Suite struct AuthMethodTests {
  private func methods(_ config: String) throws(Failure) -> [AuthMethod] {
    try AuthMethod.readAll(try Fields(try json(config), known: ["auth_methods"]))
  }

  private func refused(_ list: String) -> String? {
    refusal { () throws(Failure) in try methods(#"{"auth_methods":\#(list)}"#) }
  }

  @Test("The defaults are BankID and Vipps, in a browser")
  func defaults() throws {
    let methods = try methods("{}")
    #expect(methods.map { $0.id } == ["bankid", "vipps"])
    #expect(methods.map { $0.label } == ["BankID", "Vipps"])
    #expect(methods.allSatisfy { $0.flow == .pkce && $0.provider == $0.id })
  }

  @Test("Each method has its configured form; provider and label default to the id's")
  func own() throws {
    let methods = try methods(
      #"{"auth_methods":[{"id":"vipps","provider":"custom:vipps","flow":"id_token"},"#
        + #"{"id":"email","flow":"password","label":"E-post"},{"id":"x","flow":"pkce"}]}"#)
    #expect(methods.map { $0.provider } == ["custom:vipps", "email", "x"])
    #expect(methods.map { $0.label } == ["Vipps", "E-post", "x"])
    #expect(methods.map { $0.flow } == [.idToken, .password, .pkce])
    #expect(try self.methods(#"{"auth_methods":[]}"#).isEmpty)
  }

  @Test("Every failure names its field")
  func mistakes() {
    #expect(refused("{}") == "request.wrong_type /auth_methods")
    #expect(refused("[7]") == "request.wrong_type /auth_methods/0")
    #expect(refused(#"[{"flow":"pkce"}]"#) == "request.missing_field /auth_methods/0/id")
    #expect(refused(#"[{"id":"a"}]"#) == "request.missing_field /auth_methods/0/flow")
    #expect(
      refused(#"[{"id":"a","flow":"oauth"}]"#) == "request.invalid_value /auth_methods/0/flow")
    #expect(
      refused(#"[{"id":"a","flow":"pkce"},{"id":"a","flow":"password"}]"#)
        == "request.invalid_value /auth_methods/1/id")
    #expect(
      refused(#"[{"id":"a","flow":"pkce","provider":"a b"}]"#)
        == "request.invalid_value /auth_methods/0/provider")
    #expect(
      refused(#"[{"id":"a","flow":"pkce","icon":"a"}]"#)
        == "request.unknown_field /auth_methods/0/icon")
  }
}
