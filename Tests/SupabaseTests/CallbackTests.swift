import Base
import TestSupport
import Testing
import Vault

@testable import Supabase

@Suite struct CallbackTests {
  private func read(_ url: String, _ redirect: String = "app.example://signed-in") throws
    -> Callback
  {
    try Vault.start()
    return try Callback.read(.string(url), redirectURL: redirect)
  }

  /// The callback as text.
  private func words(_ url: String, _ redirect: String = "app.example://signed-in") throws -> String
  {
    switch try read(url, redirect) {
    case .code(let code): return "code \(text(code) ?? "")"
    case .refused(let error, let code, let description):
      return "refused \(error) \(code ?? "-") \(description ?? "-")"
    case .foreign: return "foreign"
    }
  }

  @Test(
    "A code; other parameters are the app's own",
    arguments: [
      ("app.example://signed-in?code=c0de&state=st", "code c0de"),
      ("app.example://signed-in?state=st&code=c0de", "code c0de"),
      ("app.example://signed-in/?code=c0de&state=st", "code c0de"),
      ("APP.example://Signed-In?code=c0de&state=st", "code c0de"),
      ("app.example://signed-in?code=c0de&state=st#", "code c0de"),
      ("app.example://signed-in?code=c0de&state=st#_=_", "code c0de"),
      ("app.example://signed-in#code=c0de&state=st", "code c0de"),
      ("app.example://signed-in?code=c0de", "code c0de"),
      ("app.example://signed-in?code=c0de&state=", "code c0de"),
      ("app.example://signed-in?code=c%30de&stat%65=a%2Bb+c%C3%A5", "code c0de"),
      ("app.example://signed-in?&&x&=y&code=c0de&state=st&", "code c0de"),
      ("app.example://signed-in?state=own&code=c0de&state=st", "code c0de"),
      ("app.example://signed-in?code=c%2&state=%zz%", "code c%2"),
    ])
  func codes(url: String, expected: String) throws {
    try expect(words(url), equals: expected)
  }

  @Test(
    "An error in the query, the fragment or both; it takes precedence over a code",
    arguments: [
      (
        "app.example://signed-in?error=access_denied&error_code=access_denied"
          + "&error_description=The+user+cancelled&state=st",
        "refused access_denied access_denied The user cancelled"
      ),
      (
        "app.example://signed-in?state=st#error=server_error&error_code=unexpected_failure"
          + "&error_description=Unable%20to%20exchange%20external%20code",
        "refused server_error unexpected_failure Unable to exchange external code"
      ),
      (
        "app.example://signed-in?error=access_denied&state=st#error=access_denied&state=st",
        "refused access_denied - -"
      ),
      ("app.example://signed-in?code=c0de&error=x&state=st", "refused x - -"),
      ("app.example://signed-in?error=", "refused  - -"),
    ])
  func refusals(url: String, expected: String) throws {
    try expect(words(url), equals: expected)
  }

  @Test(
    "A parameter that comes twice is refused, whatever its values",
    arguments: [
      ("?code=c&code=c", "code"), ("?code=&code=c", "code"), ("?code=c&state=s&c%6fde", "code"),
      ("#code=c&code=d", "code"), ("?error=x&error=y", "error"),
      ("?error=x&error_code=a&error_code=a", "error_code"),
      ("?error_description=a&error_description=b&code=c", "error_description"),
    ])
  func repeated(answer: String, name: String) throws {
    let error = #expect(throws: Failure.self) { try words("app.example://signed-in" + answer) }
    expect(error?.code, equals: .requestInvalidValue)
    expect(error?.field, equals: "/callback_url")
    expect(error?.message, equals: "the parameter \(name) comes more than once")
  }

  @Test(
    "Another URL, or one without the parameters of a sign-in",
    arguments: [
      "", "app.example", "app.example://signed-in", "app.example://signed-in?",
      "app.example://signed-in?code=", "app.example://signed-in?codes=1&Code=2&state=st",
      "app.example://signed-in#access_token=a.b.c&refresh_token=x&state=st",
      "app.example://signed-out?code=c", "app.example://signed-in/x?code=c",
      "app.example://signed-in.evil?code=c", "app.example://evil@signed-in?code=c",
      "app.example://signed-in@evil?code=c", "app.example://signed-in:80?code=c",
      "other.example://signed-in?code=c", "https://signed-in?code=c", "//signed-in?code=c",
      "app.example:signed-in?code=c", "app.example:/signed-in?code=c",
      " app.example://signed-in?code=c", "app.example://signed-in?code=c\n",
      "app.example://signed-in?code=c d", "app.example:\\\\signed-in?code=c",
      "app.example://signed-in\\@evil?code=c", "app.example://signed-in?code=%0d%0aX",
      "app.example://signed-in?code=%00", "app.example://signed-in?code=%20",
      "://signed-in?code=c", "1app://signed-in?code=c", "app.example://signed-in;?code=c",
      "app.example://signed-in%2F?code=c",
    ])
  func foreign(url: String) throws {
    try expect(words(url), equals: "foreign")
  }

  @Test(
    "Redirect URLs of every form",
    arguments: [
      ("https://app.no/cb", "https://app.no/cb?code=c&state=s", true),
      ("https://app.no/cb", "https://APP.no/cb?code=c&state=s", true),
      ("https://app.no/cb", "https://app.no/CB?code=c&state=s", false),
      ("https://app.no/cb", "http://app.no/cb?code=c&state=s", false),
      ("https://app.no", "https://app.no/?code=c&state=s", true),
      ("https://app.no/", "https://app.no?code=c&state=s", true),
      ("https://app.no/cb", "https://app.no/cb/?code=c&state=s", false),
      ("http://127.0.0.1:7777/cb", "http://127.0.0.1:7777/cb?code=c&state=s", true),
      ("http://127.0.0.1:7777/cb", "http://127.0.0.1:7778/cb?code=c&state=s", false),
      ("com.app:/cb", "com.app:/cb?code=c&state=s", true),
      ("com.app:cb", "com.app:cb?code=c&state=s", true),
      ("com.app:cb", "com.app:/cb?code=c&state=s", false),
      ("com.app:///cb", "com.app:///cb?code=c&state=s", true),
      ("com.app:///cb", "com.app:/cb?code=c&state=s", false),
      ("com.app:a/cb", "com.app://cb?code=c&state=s", false),
      ("com.app:a/cb", "com.app:a/cb?code=c&state=s", true),
      ("com.my_app://cb", "com.my_app://cb?code=c&state=s", true),
      ("app://cb?x=1#y", "app://cb?x=1&code=c&state=s", true),
      ("h2app://cb", "h2app://cb?code=c&state=s", true),
      ("app2://cb", "app2://cb?code=c&state=s", true),
      ("2app://cb", "2app://cb?code=c&state=s", false),
      ("not a url", "not a url?code=c&state=s", false), ("", "?code=c", false),
      ("not a url", "app://cb?code=c&state=s", false), ("", "app://cb?code=c&state=s", false),
    ])
  func redirects(redirect: String, url: String, isOurs: Bool) throws {
    try expect(words(url, redirect), equals: (isOurs ? "code c" : "foreign"))
  }

  @Test("Codes up to the limit are accepted, longer ones are not")
  func lengths() throws {
    let start = "app.example://signed-in?state=s&code="
    try expect(words(start + String(repeating: "c", count: 1_024)).hasPrefix("code c"))
    try expect(words(start + String(repeating: "c", count: 1_025)), equals: "foreign")
    try expect(words(start + "c" + String(repeating: "&", count: 100_000)), equals: "code c")
  }

  @Test("From a JSON value, so that the code is never in a Swift string")
  func fromJSON() throws {
    try Vault.start()
    let redirect = "app.example://signed-in"
    let callback = try Callback.read(
      "app.example://signed-in?code=c&state=s", redirectURL: redirect)
    guard case .code(let code) = callback else {
      Issue.record("not taken")
      return
    }
    expect(text(code), equals: "c")
    for other in [7, nil, [:], [], true] as [JSON] {
      guard case .foreign = try Callback.read(other, redirectURL: redirect) else {
        Issue.record("taken")
        continue
      }
    }
  }

  @Test("Random bytes give a result")
  func noise() throws {
    var seed: UInt64 = 7
    func next() -> Int {
      seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(seed >> 33)
    }
    let pieces = [
      "app.example", ":", "/", "//", "signed-in", "?", "#", "&", "=", "code", "state", "error", "%",
      "%4", "%41", "+", "@", "å", "\0", " ", "x",
    ]
    for _ in 0..<20_000 {
      let url = (0..<next() % 16).map { _ in pieces[next() % pieces.count] }.joined()
      for (url, redirect) in [
        (url, "app.example://signed-in"),
        ("app.example://signed-in" + url, "app.example://signed-in"), (url, url),
      ] {
        do { _ = try words(url, redirect) } catch let error as Failure {
          expect(error.code, equals: .requestInvalidValue)
        }
      }
    }
  }
}
