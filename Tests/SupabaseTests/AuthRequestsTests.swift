import Base
import TestSupport
import Testing

@testable import Supabase

/// The requests as they are sent, line by line.
@Suite struct AuthRequestsTests {
  private let headers =
    #""headers":{"apikey":"sb_publishable_k","Accept":"application/json","#
    + #""X-Client-Info":"holdfast/0.2.0","X-Supabase-Api-Version":"2024-01-01""#
  private let url = #""url":"https://x.supabase.co/auth/v1"#

  @Test("Refresh")
  func refresh() throws {
    let request = try AuthRequests.refresh(try backend(), token: try secret("v3sbnbprgt4x"))
    try expect(
      rendered(request, id: 7),
      equals:
        #"{"id":7,"purpose":"refresh","method":"POST",\#(url)/token?grant_type=refresh_token","#
        + #"\#(headers),"Content-Type":"application/json"},"#
        + #""body":"{\"refresh_token\":\"v3sbnbprgt4x\"}","timeout_ms":15000}"#)
  }

  @Test("The user of a token")
  func user() throws {
    let request = try AuthRequests.user(try backend(), bearer: try secret("a.b-c.d_e"))
    try expect(
      rendered(request),
      equals: #"{"id":1,"purpose":"validate","method":"GET",\#(url)/user",\#(headers),"#
        + #""Authorization":"Bearer a.b-c.d_e"},"body":null,"timeout_ms":15000}"#)
  }

  @Test(
    "Logout of this session, all, or all others",
    arguments: [
      (AuthRequests.LogoutScope.local, "local"), (.global, "global"), (.others, "others"),
    ])
  func logout(wanted: AuthRequests.LogoutScope, scope: String) throws {
    let request = try AuthRequests.logout(try backend(), bearer: try secret("a.b.c"), wanted)
    try expect(
      rendered(request),
      equals:
        #"{"id":1,"purpose":"revoke","method":"POST",\#(url)/logout?scope=\#(scope)",\#(headers),"#
        + #""Authorization":"Bearer a.b.c"},"body":null,"timeout_ms":15000}"#)
  }

  @Test("Password; the user's input is escaped only as JSON")
  func password() throws {
    let request = try AuthRequests.password(
      try backend(), email: "a@example.org", password: "p\"å\\ \n")
    try expect(
      rendered(request),
      equals: #"{"id":1,"purpose":"sign_in","method":"POST",\#(url)/token?grant_type=password","#
        + #"\#(headers),"Content-Type":"application/json"},"#
        + #""body":"{\"email\":\"a@example.org\",\"password\":\"p\\\"å\\\\ \\n\"}","#
        + #""timeout_ms":15000}"#)
  }

  @Test("PKCE")
  func pkce() throws {
    let request = try AuthRequests.pkce(
      try backend(), code: try secret("c0de"), verifier: try secret("ver-ifier"))
    try expect(
      rendered(request),
      equals: #"{"id":1,"purpose":"sign_in","method":"POST",\#(url)/token?grant_type=pkce","#
        + #"\#(headers),"Content-Type":"application/json"},"#
        + #""body":"{\"auth_code\":\"c0de\",\"code_verifier\":\"ver-ifier\"}","timeout_ms":15000}"#)
  }

  @Test("Identity token with the raw nonce")
  func idToken() throws {
    let request = try AuthRequests.idToken(
      try backend(), provider: "custom:vipps", idToken: "x.y.z", nonce: "n0nce")
    try expect(
      rendered(request),
      equals: #"{"id":1,"purpose":"sign_in","method":"POST",\#(url)/token?grant_type=id_token","#
        + #"\#(headers),"Content-Type":"application/json"},"body":"#
        + #""{\"provider\":\"custom:vipps\",\"id_token\":\"x.y.z\",\"nonce\":\"n0nce\"}","#
        + #""timeout_ms":15000}"#)
  }

  @Test("The credentials of a grant must be strings")
  func wrongCredentials() throws {
    let backend = try backend()
    for value in [7, nil, true, [:], ["x"]] as [JSON] {
      expect(
        refusal { () throws(Failure) in
          try AuthRequests.password(backend, email: "a", password: value)
        }, equals: "internal.defect -")
    }
    let notUTF8 = try secretBytes([0xC3, 0x28])
    expect(
      refusal { () throws(Failure) in try AuthRequests.refresh(backend, token: notUTF8) },
      equals: "internal.defect -")
  }

  @Test("An API key of any kind is never sent as a bearer token")
  func keyIsNoBearer() throws {
    for key in ["sb_publishable_k", "eyJh.eyJy.c2ln"] {
      let backend = try backend(key: key)
      for request in [
        try AuthRequests.refresh(backend, token: try secret("t")),
        try AuthRequests.password(backend, email: "a", password: "b"),
        try AuthRequests.pkce(backend, code: try secret("c"), verifier: try secret("v")),
      ] {
        let headers = try #require(try request.rendered(id: 1)["headers"])
        expect(headers["Authorization"] == nil)
        expect(headers["apikey"]?.string, equals: key)
      }
    }
  }

  @Test("A token with a line break is never put into a header")
  func headerInjection() throws {
    for token in ["a\r\nX-Evil: 1", "a b", "tøken", "", "a\u{7F}", "a\0"] {
      let request = try AuthRequests.user(try backend(), bearer: try secret(token))
      expect(
        refusal { () throws(Failure) in try request.rendered(id: 1) }, equals: "internal.defect -")
    }
  }

  // MARK: /authorize

  @Test("The page to open; the redirect URL is sent as it is")
  func authorize() throws {
    let url = AuthRequests.authorizeURL(
      try backend(), provider: "bankid", redirectURL: "app.example://signed-in",
      challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    expect(
      url,
      equals: "https://x.supabase.co/auth/v1/authorize?provider=bankid"
        + "&redirect_to=app.example%3A%2F%2Fsigned-in"
        + "&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=s256")
  }

  @Test(
    "A redirect URL keeps its query",
    arguments: [
      ("com.app:/in?a=1", "com.app%3A%2Fin%3Fa%3D1"),
      ("https://a.no/%C3%A5?x=", "https%3A%2F%2Fa.no%2F%25C3%25A5%3Fx%3D"),
    ])
  func redirects(redirect: String, expected: String) throws {
    let url = AuthRequests.authorizeURL(
      try backend(), provider: "custom:a&b", redirectURL: redirect, challenge: "c")
    expect(url.contains("?provider=custom%3Aa%26b&redirect_to=\(expected)&code_challenge=c&"))
  }
}
