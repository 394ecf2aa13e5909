import Policy
import TestSupport
import Testing

@Suite struct RoutePolicyTests {
  private func allows(_ route: String, _ screens: String...) -> Bool {
    RoutePolicy.allows(route, screens: screens)
  }

  @Test("ORG-8: a screen allows its path with any query, fragment or slash at the end")
  func exact() {
    for route in ["/contacts", "/contacts/", "/contacts?q=1", "/contacts#top", "/contacts/?a=/b"] {
      expect(allows(route, "/mentor", "/contacts"), "\(route)")
      expect(!allows(route, "/mentor"), "\(route)")
    }
    expect(!allows("/contacts/1", "/contacts"))
    expect(!allows("/contact", "/contacts"))
    expect(!allows("/contactsx", "/contacts"))
    expect(!allows("/Contacts", "/contacts"))
    expect(!allows("/", "/contacts"))
    expect(allows("/", "/"))
  }

  @Test("A screen that ends in slash-star allows the paths below it, by whole segments")
  func below() {
    expect(allows("/contacts/1", "/contacts/*"))
    expect(allows("/contacts/1/edit?x", "/contacts/*"))
    expect(allows("/contacts/J%C3%B8rn", "/contacts/*"))
    expect(!allows("/contacts", "/contacts/*"))
    expect(!allows("/contacts/", "/contacts/*"))
    expect(!allows("/contactsx/1", "/contacts/*"))
    expect(allows("/anything", "/*"))
    expect(!allows("/", "/*"))
    expect(!allows("/a/b/c", "/a/*/c"))
  }

  @Test("A star allows every path")
  func star() {
    for route in ["/", "/admin", "/a/b?c"] { expect(allows(route, "*")) }
    expect(!allows("/admin"))
    expect(!allows("/*", "/contacts"))
  }

  @Test("A percent-encoded route is treated as its decoded form")
  func encoded() {
    expect(allows("/%63ontacts", "/contacts"))
    expect(!allows("/%61dmin", "/contacts"))
    expect(allows("/contacts/a%20b", "/contacts/*"))
  }

  @Test(
    "Routes that two parsers could read differently are not allowed",
    arguments: [
      "", "contacts", "//contacts/1", "/contacts//1", "/contacts/../admin", "/contacts/./1",
      "/contacts/..", "/contacts/.", "/contacts/%2e%2e/admin", "/contacts/%2E%2E/admin",
      "/contacts/.%2e/admin", "/contacts/%252e%252e/admin", "/contacts/..%2fadmin",
      "/contacts/1%2f..%2fadmin", "/contacts/1%5c..%5cadmin", "/contacts/..\\admin",
      "/contacts\\..\\admin", "/contacts/..;/admin", "/contacts/1;x=/../admin",
      "/contacts/%00", "/contacts/1%0a", "/contacts/ 1", "/contacts/%", "/contacts/%2",
      "/contacts/%zz", "/contacts/%c0%af", "/contacts/%ff", "/contacts/1%3fadmin",
      "/contacts/1%23", "/contacts/\u{7F}", "http://evil/contacts/1", "/contacts/%25",
    ])
  func tricks(route: String) {
    expect(!allows(route, "/contacts", "/contacts/*"))
    expect(!allows(route, "*"))
  }

  @Test("The role's home is always allowed, so that a redirect to it does not loop")
  func home() {
    expect(RoutePolicy.allows("/mentor?x", screens: ["/contacts"], home: "/mentor"))
    expect(!RoutePolicy.allows("/mentor/x", screens: ["/contacts"], home: "/mentor"))
    expect(!RoutePolicy.allows("/admin", screens: [], home: "/mentor"))
    expect(!RoutePolicy.allows("//", screens: [], home: ""))
  }

  @Test("An allowed route stays below the screen, however a router decodes and joins it")
  func neverMore() {
    var random = Random(seed: 11)
    let parts = [
      "/", "..", ".", "%2e", "%2f", "%5c", "%25", "contacts", "admin", ";", "\\", "?", "#", "%",
      "1", " ", "%C3%B8", "*",
    ]
    var allowed = 0
    for _ in 0..<50_000 {
      var route = "/contacts/"
      for _ in 0..<Int(random.next() % 7) {
        route += parts[Int(random.next() % UInt64(parts.count))]
      }
      guard RoutePolicy.allows(route, screens: ["/contacts/*"]) else { continue }
      allowed += 1
      expect(resolved(route).starts(with: ["contacts"]), "\(route)")
      expect(resolved(route).count > 1, "\(route)")
    }
    expect(allowed > 1_000)
  }

  /// A careless router: decodes until nothing changes, accepts every kind of slash, and follows
  /// every `..`.
  private func resolved(_ route: String) -> [String] {
    var text = String(route.prefix { $0 != "?" && $0 != "#" })
    for _ in 0..<3 { text = text.removingPercentEncodingTolerantly }
    text = String(text.prefix { $0 != "?" && $0 != "#" })
    var path: [String] = []
    for segment in text.split(whereSeparator: { $0 == "/" || $0 == "\\" }) {
      let name = segment.prefix { $0 != ";" }
      if name == ".." { _ = path.popLast() } else if name != "." { path.append(String(name)) }
    }
    return path
  }
}

extension String {
  /// Percent-decoded; malformed escapes stay.
  fileprivate var removingPercentEncodingTolerantly: String {
    var bytes: [UInt8] = []
    var rest = Array(utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
