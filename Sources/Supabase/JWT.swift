import Base
import Vault

/// Reads a JSON Web Token (RFC 7519) without verifying it, which only the server can.
enum JWT {
  /// The claims; nil when the token is not three parts in base64url with an object in the middle.
  static func claims(of token: SecretBytes) throws(Failure) -> JSON? {
    defer { withExtendedLifetime(token) {} }
    let dot = UInt8(ascii: ".")
    guard let first = token.bytes.firstIndex(of: dot), let last = token.bytes.lastIndex(of: dot),
      try decode(token, 0..<first) != nil, first < last,
      let payload = try decode(token, (first + 1)..<last),
      try decode(token, (last + 1)..<token.count) != nil
    else { return nil }
    defer { withExtendedLifetime(payload) {} }
    guard let claims = try? JSON.receive(payload.bytes).value, claims.kind == .object else {
      return nil
    }
    return claims
  }

  /// The bytes of a part; nil when it is empty or not base64url (which excludes a further dot).
  private static func decode(
    _ token: SecretBytes, _ part: Range<Int>
  ) throws(Failure) -> SecretBytes? {
    part.isEmpty
      ? nil : try Digest.fromBase64URL(UnsafeRawBufferPointer(rebasing: token.bytes[part]))
  }
}
