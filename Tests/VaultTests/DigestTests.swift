import Base
import TestSupport
import Testing

@testable import Vault

@Suite struct DigestTests {
  private func decoded(_ text: String) throws -> [UInt8]? {
    let input = Array(text.utf8)
    var result = Result<SecretBytes?, Failure>.success(nil)
    input.withUnsafeBytes { input in
      do throws(Failure) { result = .success(try Digest.fromBase64URL(input)) } catch {
        result = .failure(error)
      }
    }
    return bytes(of: try result.get())
  }

  @Test("SHA-256")
  func sha256() {
    expect(
      hexText(of: Array("abc".utf8).withUnsafeBytes { Digest.sha256($0) }),
      equals: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    expect(
      hexText(of: [UInt8]().withUnsafeBytes { Digest.sha256($0) }),
      equals: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
  }

  @Test("The PKCE example of RFC 7636, appendix B")
  func pkce() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    let challenge = Array(verifier.utf8).withUnsafeBytes { Digest.base64URL(Digest.sha256($0)) }
    expect(challenge, equals: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
  }

  @Test(
    "base64url of RFC 4648, section 10, without padding",
    arguments: [
      ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"),
      ("fooba", "Zm9vYmE"), ("foobar", "Zm9vYmFy"),
    ])
  func base64(plain: String, encoded: String) throws {
    expect(Digest.base64URL(Array(plain.utf8)), equals: encoded)
    try expect(decoded(encoded), equals: Array(plain.utf8))
  }

  @Test("All lengths and bytes encode and decode, with padding and without")
  func roundTrip() throws {
    for length in 0..<70 {
      let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 251) }
      let text = Digest.base64URL(bytes)
      expect(!text.contains("+") && !text.contains("/") && !text.contains("="))
      try expect(decoded(text), equals: bytes)
      let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
      try expect(decoded(text + padding), equals: bytes)
    }
  }

  @Test(
    "Texts that are not base64url",
    arguments: [
      "Z", "Zg=", "Zg===", "Zh", "Zm9", "Zm9v=", "Zm+v", "Zm/v", "Zm 9v", "Zm9v\n", "Zg==Zg", "é",
      "=", "\0",
    ])
  func garbage(text: String) throws {
    try expect(decoded(text), equals: nil)
  }
}
