import Base
import TestSupport
import Testing
import Vault

@testable import Supabase

@Suite struct PercentTests {
  private func decoded(_ input: String) throws -> String? {
    try Vault.start()
    let bytes = Array(input.utf8)
    return try bytes.withUnsafeBytes { text(try Percent.decode($0[...])) }
  }

  @Test(
    "Only unreserved characters stay",
    arguments: [
      ("", ""), ("aZ09-._~", "aZ09-._~"), (" ", "%20"), ("+", "%2B"), ("&=?#/", "%26%3D%3F%23%2F"),
      ("\"'()*,:;", "%22%27%28%29%2A%2C%3A%3B"), ("å😀", "%C3%A5%F0%9F%98%80"), ("\0\n", "%00%0A"),
      ("%41", "%2541"),
    ])
  func encoding(plain: String, encoded: String) throws {
    expect(Percent.encode(plain), equals: encoded)
    try expect(decoded(encoded), equals: plain)
  }

  @Test(
    "Malformed escapes stay as they are",
    arguments: [
      ("%", "%"), ("%4", "%4"), ("%4g", "%4g"), ("%%41", "%A"), ("a%", "a%"), ("%c3%A5", "å"),
      ("a+b", "a b"), ("%2b", "+"), ("%-1", "%-1"),
    ])
  func decoding(input: String, expected: String) throws {
    try expect(decoded(input), equals: expected)
  }

  @Test("Decoding a part of a text stays within it")
  func slices() throws {
    try Vault.start()
    let bytes = Array("ab%41cd".utf8)
    for (part, expected) in [(1..<4, "b%4"), (2..<5, "A"), (4..<7, "1cd"), (7..<7, "")] {
      let decoded = try bytes.withUnsafeBytes { text(try Percent.decode($0[part])) }
      expect(decoded, equals: expected)
    }
  }
}
