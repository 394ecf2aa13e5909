import Base
import TestSupport
import Testing

@testable import Vault

/// Published test vectors, run through the functions that seal and make tags.
@Suite struct PublishedVectorTests {
  // MARK: XChaCha20-Poly1305, draft-irtf-cfrg-xchacha-03, appendix A.3.1

  private let plain =
    Array(
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        .utf8) + Array("sunscreen would be it.".utf8)
  private let associated = hex("50515253c0c1c2c3c4c5c6c7")
  private let nonce = hex("404142434445464748494a4b4c4d4e4f5051525354555657")
  private let cipher = hex(
    "bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb731c7f1b0b4aa6440bf3a82f4eda"
      + "7e39ae64c6708c54c216cb96b72e1213b4522f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b238"
      + "3565d3fff921f9664c97637da9768812f615c68b13b52ec0875924c1c7987947deafd8780acf49")

  private func encrypted(with key: Key) -> [UInt8]? {
    var result = plain + [UInt8](repeating: 0, count: 16)
    let count = plain.count
    let done = result.withUnsafeMutableBytes { out in
      nonce.withUnsafeBytes { nonce in
        guard let nonce = nonce.baseAddress, let out = out.baseAddress else { return false }
        return key.encrypt(out, count, nonce: nonce, associated: associated)
      }
    }
    return done ? result : nil
  }

  private func decrypted(
    _ cipher: [UInt8], nonce: [UInt8], associated: [UInt8], with key: Key
  ) -> [UInt8]? {
    var result = [UInt8](repeating: 0, count: cipher.count - 16)
    let done = result.withUnsafeMutableBytes { out in
      cipher.withUnsafeBytes { cipher in
        nonce.withUnsafeBytes { nonce in
          guard let nonce = nonce.baseAddress, let out = out.baseAddress else { return false }
          return key.decrypt(cipher, nonce: nonce, associated: associated, to: out)
        }
      }
    }
    return done ? result : nil
  }

  @Test("XChaCha20-Poly1305: the draft's example encrypts and decrypts")
  func sunscreen() throws {
    let key = try fixedKey(0x80)
    expect(encrypted(with: key), equals: cipher)
    expect(decrypted(cipher, nonce: nonce, associated: associated, with: key), equals: plain)
  }

  @Test("XChaCha20-Poly1305: the example does not decrypt with any bit changed")
  func everyBit() throws {
    let key = try fixedKey(0x80)
    for part in 0..<3 {
      var parts = [cipher, nonce, associated]
      for index in parts[part].indices {
        for bit in 0..<8 {
          parts[part][index] ^= 1 << UInt8(bit)
          expect(
            decrypted(parts[0], nonce: parts[1], associated: parts[2], with: key), equals: nil,
            "part \(part), bit \(bit) of byte \(index)")
          parts[part][index] ^= 1 << UInt8(bit)
        }
      }
    }
  }

  // MARK: BLAKE2b

  private func blake2b(_ length: Int, _ message: [UInt8], key: [UInt8] = []) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: length)
    let done = result.withUnsafeMutableBytes { out in
      key.withUnsafeBytes { Key.blake2b(out, of: message, key: $0) }
    }
    return done ? result : []
  }

  @Test("BLAKE2b: the example of RFC 7693, appendix A")
  func abc() {
    expect(
      hexText(of: blake2b(64, Array("abc".utf8))),
      equals: "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
        + "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923")
  }

  @Test("BLAKE2b: the official known answers, keyed")
  func knownAnswers() {
    let key = (0..<64).map { UInt8($0) }
    expect(
      hexText(of: blake2b(64, [], key: key)),
      equals: "10ebb67700b1868efb4417987acf4690ae9d972fb7a590c2f02871799aaa4786"
        + "b5e996e8f0f4eb981fc214b005f42d2ff4233499391653df7aefcbc13fc51568")
    expect(
      hexText(of: blake2b(64, [0], key: key)),
      equals: "961f6dd1e4dd30f63901690c512e78e4b45e4742ed197c3c5e45c549fd25f2e4"
        + "187b0bc9fe30492b16b0d0bc4ef9b0f34c7003fac09a5ef1532e69430234cebd")
    expect(
      hexText(of: blake2b(64, (0..<255).map { UInt8($0) }, key: key)),
      equals: "142709d62e28fcccd0af97fad0f8465b971e82201dc51070faa0372aa43e9248"
        + "4be1c1e73ba10906d5d1853db6a4106e0a7bf9800d373d6dee2d46d62ef2a461")
  }

  /// The sequence of test bytes of the RFC.
  private func sequence(_ length: Int) -> [UInt8] {
    var a = 0xDEAD_4BAD &* UInt32(length)
    var b: UInt32 = 1
    return (0..<length).map { _ in
      (a, b) = (b, a &+ b)
      return UInt8(b >> 24)
    }
  }

  @Test("BLAKE2b: the self-test of RFC 7693, appendix E: every length, with a key and without")
  func selfTest() {
    var all: [UInt8] = []
    for length in [20, 32, 48, 64] {
      for messageLength in [0, 3, 128, 129, 255, 1_024] {
        let message = sequence(messageLength)
        all += blake2b(length, message)
        all += blake2b(length, message, key: sequence(length))
      }
    }
    expect(
      hexText(of: blake2b(32, all)),
      equals: "c23a7800d98123bd10f506c61e29da5603d763b8bbad2e737f5e765a7bccd475")
  }

  @Test("Look-up tags and derived keys are made with this function")
  func sameFunction() throws {
    let key = try fixedKey()
    let secret = (0..<32).map { UInt8($0) }
    let domain = [0, 0, 0, 1, 0x64] as [UInt8]
    expect(key.tag("d", [7]), equals: blake2b(16, domain + [0, 0, 0, 1, 7], key: secret))
    expect(bytes(of: try key.derived(for: [7]).secret), equals: blake2b(32, [7], key: secret))
  }
}
