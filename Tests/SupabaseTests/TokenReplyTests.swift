import Base
import TestSupport
import Testing
import Vault

@testable import Supabase

@Suite struct TokenReplyTests {
  private func read(_ reply: String, at path: String = "/session") throws(Failure) -> TokenReply {
    try Vault.start()
    return try TokenReply.read(try json(reply, .tolerant), at: path)
  }

  /// The reply with one member replaced or removed.
  private func changed(_ member: String, _ value: JSON?) throws -> TokenReply {
    let reply = try json(tokenReply()).shallowCopy
    if let value { reply.set(member: member, value) } else { reply.remove(member) }
    try Vault.start()
    return try TokenReply.read(reply, at: "/session")
  }

  private func field(_ member: String, _ value: JSON?) -> String? {
    do {
      _ = try changed(member, value)
      return nil
    } catch let error as Failure {
      return "\(error.code.rawValue) \(error.field ?? "-")"
    } catch { return "?" }
  }

  @Test("The response to a grant")
  func grant() throws {
    let reply = try read(tokenReply())
    expect(text(reply.accessToken)?.hasSuffix(".c2lnbmF0dXJl"), equals: true)
    expect(text(reply.refreshToken), equals: "v3sbnbprgt4x")
    expect(reply.expiresInS, equals: 3_600)
    expect(reply.expiresAtS, equals: 1_732_172_400)
    expect(reply.userID.text, equals: userText)
  }

  @Test(
    "Numbers with a fraction are accepted, because some servers send them, and texts, as in redirects",
    arguments: [
      (.real(3600.0), 3_600), (.real(3599.9), 3_599), (0, 0), (1, 1), (315_360_000, 315_360_000),
      ("3600", 3_600), ("3599.9", 3_599), ("0", 0), ("315360000", 315_360_000),
    ] as [(JSON, Int64)])
  func lifetimes(value: JSON, expected: Int64) throws {
    try expect(changed("expires_in", value).expiresInS, equals: expected)
  }

  @Test(
    "Invalid lifetimes",
    arguments: [
      nil, .null, "", "soon", "3600s", "-1", "315360001", "[3600]", #""3600""#, "1e999",
      -1, 315_360_001, .int(Int64.max), .int(Int64.min), .real(1e300),
      .real(-0.5e300), true, [:],
    ] as [JSON?])
  func badLifetimes(value: JSON?) {
    expect(field("expires_in", value), equals: "session.invalid /session/expires_in")
  }

  @Test("expires_at may be absent, null or out of range; then it is unknown")
  func endings() throws {
    for value in [nil, .null, "soon", -1, .int(Int64.max), .real(1e300), 253_402_300_800]
      as [JSON?]
    {
      try expect(changed("expires_at", value).expiresAtS, equals: nil)
    }
    try expect(changed("expires_at", .real(1732172400.75)).expiresAtS, equals: 1_732_172_400)
    try expect(changed("expires_at", "1732172400").expiresAtS, equals: 1_732_172_400)
    try expect(changed("expires_at", 253_402_300_799).expiresAtS, equals: 253_402_300_799)
  }

  @Test("Unknown members of any form are ignored, also those of the user")
  func tolerance() throws {
    try expect(changed("provider_token", ["deep": [[[]]]]).expiresInS, equals: 3_600)
    try expect(changed("token_type", nil).expiresInS, equals: 3_600)
    try expect(changed("user", ["id": .string(userText)]).userID.text, equals: userText)
    try expect(
      changed("user", ["id": .string(userText.uppercased())]).userID.text, equals: userText)
  }

  @Test("A member that is missing or of a wrong type is named")
  func missing() {
    for name in ["access_token", "refresh_token"] {
      for value in [nil, .null, 7, "", [:]] as [JSON?] {
        expect(field(name, value), equals: "session.invalid /session/\(name)")
      }
    }
    expect(field("user", nil), equals: "session.invalid /session/user")
    expect(field("user", []), equals: "session.invalid /session/user")
    expect(field("user", [:]), equals: "session.invalid /session/user/id")
    expect(field("user", ["id": 7]), equals: "session.invalid /session/user/id")
    expect(field("user", ["id": "me"]), equals: "session.invalid /session/user/id")
    expect(
      field("user", ["id": .string(otherText)]), equals: "session.invalid /session/access_token",
      "the token is another user's")
  }

  @Test("Without a path, pointers start at the root of the reply")
  func rootPath() {
    expect(
      refusal { () throws(Failure) in try read("{}", at: "") },
      equals: "session.invalid /access_token")
    expect(refusal { () throws(Failure) in try read("[]", at: "") }, equals: "session.invalid ")
  }

  @Test(
    "Tokens that are not valid header values",
    arguments: [
      "a\r\nX-Evil: 1", "a b", "a\t", "tøken", "a\u{7F}", " a", "a\n", "\u{1}",
      String(repeating: "a", count: 16_385),
    ])
  func injections(token: String) {
    expect(field("refresh_token", .string(token)), equals: "session.invalid /session/refresh_token")
    expect(
      field("access_token", .string(token + ".b.c")),
      equals: "session.invalid /session/access_token")
  }

  @Test("Both generations of refresh tokens are accepted")
  func refreshTokens() throws {
    for token in ["v3sbnbprgt4x", "AX0aqL3tTxC8" + String(repeating: "-_", count: 22), "short"] {
      expect(text(try changed("refresh_token", .string(token)).refreshToken), equals: token)
    }
  }

  @Test(
    "Malformed access tokens",
    arguments: [
      "a", "a.b", "e30.e30", "e30.", ".e30", "a.b.c.d", "..", ".e30.", "e30.e30.", ".e30.c2ln",
      "e30..c2ln", "e30.!!!.c2ln",
      "e30.e3.c2ln", "!.e30.c2ln", "e30.e30.!", "e30.W10.c2ln", "e30.bm90.c2ln", "e30.e30.c2ln",
      "e30.e30.c2ln.", "e30 .e30.c2ln",
    ])
  func garbledJWT(token: String) {
    expect(field("access_token", .string(token)), equals: "session.invalid /session/access_token")
  }

  @Test(
    "Missing or wrong claims that are required",
    arguments: [
      "{}", #"{"exp":1}"#, #"{"sub":"\#(userText)"}"#, #"{"sub":"\#(otherText)","exp":1}"#,
      #"{"sub":7,"exp":1}"#, #"{"sub":"\#(userText)","exp":"1"}"#,
      #"{"sub":"\#(userText)","exp":-1}"#, #"{"sub":"\#(userText)","exp":1e300}"#,
      #"{"sub":"\#(userText)","exp":1"#, #"{"sub":"\#(userText)","exp":1}x"#,
      #"{"sub":"\#(userText)\u0000","exp":1}"#,
    ])
  func badClaims(claims: String) {
    expect(
      field("access_token", .string(token(claims: claims))),
      equals: "session.invalid /session/access_token")
  }

  @Test("A hook may strip the claims to those that are read; others may have any form")
  func barestClaims() throws {
    let bare = token(claims: #"{"sub":"\#(userText)","exp":1.5}"#)
    try expect(changed("access_token", .string(bare)).userID.text, equals: userText)
    let odd = token(claims: #"{"sub":"\#(userText)","exp":1,"session_id":7,"amr":["pwd"]}"#)
    try expect(changed("access_token", .string(odd)).userID.text, equals: userText)
  }

  @Test("No message holds a token")
  func messages() {
    for value in ["geheim\n", "geheim.geheim.geheim"] as [JSON] {
      do {
        _ = try changed("access_token", value)
        Issue.record("taken")
      } catch let error as Failure {
        expect(!error.message.contains("geheim"))
        expect(error.detail == nil)
      } catch {}
    }
  }
}
