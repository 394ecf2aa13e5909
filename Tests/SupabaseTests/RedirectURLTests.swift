import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct RedirectURLTests {
  private func read(_ url: String, _ flow: AuthMethod.Flow = .pkce) throws(Failure) -> String? {
    let config: JSON = [:]
    config.set("redirect_url", .string(url))
    return try RedirectURL.read(
      try Fields(config, known: ["redirect_url"]),
      for: [AuthMethod(id: "a", provider: "a", label: "a", flow: flow)])
  }

  @Test(
    "https, a scheme of the app, or this machine",
    arguments: [
      "https://app.example.org", "https://app.example.org:8443/in?from=app", "HTTPS://a.no/",
      "http://127.0.0.1:7777/in", "http://[::1]:1/", "http://localhost/", "http://in.localhost:80",
      "com.example.app:/in", "com.example.app://in", "com.example.app:///in", "a.b:/",
      "com.example.my_app://in/here?x=1&decode=2", "no.1881.app-x:/in",
    ])
  func taken(url: String) throws { try expect(read(url), equals: url) }

  @Test(
    "Anything else is refused",
    arguments: [
      "javascript:alert(1)", "javascript://a.no/%0aalert(1)", "data:text/html,x", "file:///x",
      "holdfast://signed-in", "app://in", "about:blank", "blob:https://a.no/x",
      "http://a.no/", "http://127.0.0.1.a.no/", "http://127.0.0.1@a.no/", "http://0.0.0.0/",
      "http:///in", "https://", "https:///in", "https:in", "https://u@a.no/", "https://a.no:x/",
      "https://a.no/#in", "com.app:/in#", "https://a.no/?code=1", "https://a.no/?x=1&error=",
      "https://a.no/?error_description=x", "com.app:in", "com.app:", "com.app://", "com.app:///",
      "com..app:/in", "com.app.:/in", ".com.app:/in", "com+a.app:/in", "com.app:/i n",
      "com.app:/\u{e5}", "com.app:\\in", "com.app", "//a.no/in", "/in", "in", "",
      "https://a.no/" + String(repeating: "a", count: 2048),
    ])
  func refused(url: String) {
    expect(
      refusal { () throws(Failure) in try read(url) }, equals: "request.invalid_value /redirect_url"
    )
    expect(
      refusal { () throws(Failure) in try read(url, .password) },
      equals: "request.invalid_value /redirect_url")
  }

  @Test("Only a sign-in in a browser needs it")
  func missing() throws {
    let config = try Fields([:], known: [])
    for (flow, isNeeded) in [(AuthMethod.Flow.pkce, true), (.idToken, false), (.password, false)] {
      let method = AuthMethod(id: "a", provider: "a", label: "a", flow: flow)
      let found = refusal { () throws(Failure) in try RedirectURL.read(config, for: [method]) }
      expect(found, equals: (isNeeded ? "request.missing_field /redirect_url" : nil))
    }
    try expect(RedirectURL.read(config, for: []), equals: nil)
  }
}
