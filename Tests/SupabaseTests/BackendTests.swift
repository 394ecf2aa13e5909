import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct BackendTests {
  @Test("With only url and key, the defaults fit the example backend")
  func defaults() throws {
    let backend = try backend()
    expect(backend.url, equals: "https://x.supabase.co")
    expect(backend.apiKey, equals: "sb_publishable_k")
    expect(backend.kinds.map { $0.name }, equals: ["activity", "contact", "contact_details"])
    expect(backend.membershipsTable, equals: "memberships")
    expect(backend.contactsTable, equals: "contacts")
    expect(backend.contactColumns, equals: ["id", "org_id", "name", "municipality", "relation"])
    expect(backend.needsNetwork, equals: ["phone", "address", "national_id"])
    expect(backend.summaryFunction, equals: "activity_summary")
  }

  @Test(
    "Valid URLs, with slashes at the end removed",
    arguments: [
      ("https://x.supabase.co", "https://x.supabase.co"), ("https://x.y/", "https://x.y"),
      ("http://127.0.0.1:54321", "http://127.0.0.1:54321"),
      ("http://[::1]:8000", "http://[::1]:8000"), ("http://[::1]", "http://[::1]"),
      ("https://host/base/path//", "https://host/base/path"),
      ("https://xn--bl-yka.no", "https://xn--bl-yka.no"),
      ("http://localhost:1", "http://localhost:1"), ("http://LocalHost", "http://LocalHost"),
      ("http://x.localhost/a", "http://x.localhost/a"), ("http://127.1.2.3", "http://127.1.2.3"),
    ])
  func addresses(given: String, kept: String) throws {
    try expect(backend(url: given).url, equals: kept)
  }

  @Test(
    "Invalid URLs",
    arguments: [
      "x.supabase.co", "ftp://x.supabase.co", "HTTPS://x.supabase.co", "https:/x.supabase.co",
      "https://", "https:///", "https://user@host", "https://user:pass@host", "https://host?q",
      "https://host#f", "https://host?", "https://host/a b", "https://ho st", "https://høst.no",
      "https://host:", "https://host:80a", "https://host:123456", "https://:80",
      "https://host/a\\\\b", "https://host\\n", "https://host/\\\"x", "https://host/<x>",
      "javascript:alert(1)", "https://host,evil", "https://[::1", "https://::1",
    ])
  func wrongAddresses(url: String) {
    expect(
      refusal { () throws(Failure) in try backend(url: url) },
      equals: "request.invalid_value /backend/url")
  }

  @Test(
    "Plain HTTP beyond this machine needs allow_insecure",
    arguments: [
      "http://x.supabase.co", "http://10.0.2.2:54321", "http://local_host", "http://localhost.evil",
      "http://127.0.0.1.evil", "http://128.0.0.1", "http://xlocalhost", "http://[::2]",
    ])
  func plainHTTP(url: String) throws {
    expect(
      refusal { () throws(Failure) in try backend(url: url) },
      equals: "request.invalid_value /backend/url")
    expect(
      refusal { () throws(Failure) in try backend(#","allow_insecure":false"#, url: url) },
      equals: "request.invalid_value /backend/url")
    try expect(backend(#","allow_insecure":true"#, url: url).url, equals: url)
  }

  @Test("A key that bypasses all policies is refused")
  func secretKeys() throws {
    // The payloads are {"role":"service_role"} and {"role":"anon"}.
    for key in ["sb_secret_k", "e30.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2ln"] {
      expect(
        refusal { () throws(Failure) in try backend(key: key) },
        equals: "request.invalid_value /backend/api_key")
    }
    let anon = "e30.eyJyb2xlIjoiYW5vbiJ9.c2ln"
    try expect(backend(key: anon).apiKey, equals: anon)
  }

  @Test("A key must be visible ASCII, because it is sent in a header")
  func keys() {
    for key in ["a b", "a\\r\\nX-Evil: 1", "nøkkel", "a\\u007f"] {
      expect(
        refusal { () throws(Failure) in try backend(key: key) },
        equals: "request.invalid_value /backend/api_key")
    }
    expect(
      refusal { () throws(Failure) in try backend(key: "") },
      equals: "request.invalid_value /backend/api_key")
  }

  @Test(
    "Names that go into URLs are identifiers",
    arguments: ["Contacts", "a-b", "a b", "1a", "a.b", "a/../b", "æ", "a,b", "a)", "", "a\\u0000"])
  func names(name: String) {
    for (config, field) in [
      (#","memberships":{"table":"\#(name)"}"#, "/backend/memberships/table"),
      (#","contacts":{"table":"\#(name)"}"#, "/backend/contacts/table"),
      (#","summary":{"function":"\#(name)"}"#, "/backend/summary/function"),
      (#","queue":{"activity":{"table":"\#(name)"}}"#, "/backend/queue/activity/table"),
    ] {
      let refused = refusal { () throws(Failure) in try backend(config) }
      expect(
        refused == "request.invalid_value \(field)" || name.contains("u0000") && refused != nil)
    }
  }

  @Test("A name may have 63 characters, as in PostgreSQL")
  func nameLength() throws {
    let longest = String(repeating: "x", count: 63)
    try expect(backend(#","summary":{"function":"\#(longest)"}"#).summaryFunction, equals: longest)
    expect(
      refusal { () throws(Failure) in try backend(#","summary":{"function":"x\#(longest)"}"#) },
      equals: "request.invalid_value /backend/summary/function")
  }

  @Test("Cached columns always have id and org_id")
  func contactColumns() throws {
    try expect(
      backend(#","contacts":{"columns":["name","city"]}"#).contactColumns,
      equals: ["id", "org_id", "name", "city"])
    try expect(
      backend(#","contacts":{"columns":["name","id"]}"#).contactColumns,
      equals: ["org_id", "name", "id"])
    let open = try backend(#","contacts":{"columns":["name","phone"],"needs_network":["address"]}"#)
    expect(open.contactColumns, equals: ["id", "org_id", "name", "phone"])
    expect(open.needsNetwork, equals: ["address"])
    try expect(backend(#","contacts":{"needs_network":[]}"#).needsNetwork.isEmpty)
  }

  @Test("A network-only column is never cached, also when it needs the network by default")
  func networkOnly() {
    func refused(_ contacts: String) -> String? {
      refusal { () throws(Failure) in try backend(#","contacts":\#(contacts)"#) }
    }
    expect(
      refused(#"{"columns":["name","phone"]}"#),
      equals: "request.invalid_value /backend/contacts/columns/1")
    expect(
      refused(#"{"columns":["name","x"],"needs_network":["x"]}"#),
      equals: "request.invalid_value /backend/contacts/columns/1")
    expect(
      refused(#"{"needs_network":["name"]}"#),
      equals: "request.invalid_value /backend/contacts/needs_network"
    )
    expect(
      refused(#"{"needs_network":["id"]}"#),
      equals: "request.invalid_value /backend/contacts/needs_network")
  }

  @Test("The name must be cached, because the search needs it; no column comes twice")
  func wrongColumns() {
    func refused(_ contacts: String) -> String? {
      refusal { () throws(Failure) in try backend(#","contacts":\#(contacts)"#) }
    }
    expect(
      refused(#"{"columns":["city"]}"#), equals: "request.invalid_value /backend/contacts/columns")
    expect(
      refused(#"{"columns":["name","name"]}"#),
      equals: "request.invalid_value /backend/contacts/columns/1")
    expect(
      refused(#"{"columns":["name",7]}"#), equals: "request.wrong_type /backend/contacts/columns/1")
    expect(refused(#"{"colums":[]}"#), equals: "request.unknown_field /backend/contacts/colums")
    expect(refused("[]"), equals: "request.wrong_type /backend/contacts")
  }
}
