import Base
import Vault

/// What a JSON Web Token says of itself (RFC 7519). The server alone can verify it.
enum JWT {
  /// The claims; nil when it is not three parts in base64url with an object in the middle.
  static func claims(of token: SecretBytes) throws(Failure) -> JSON? {
    defer { withExtendedLifetime(token) {} }
    let parts = token.bytes.split(
      separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var decoded: [SecretBytes] = []
    for part in parts {
      guard !part.isEmpty,
        let bytes = try Digest.fromBase64URL(UnsafeRawBufferPointer(rebasing: part))
      else { return nil }
      decoded.append(bytes)
    }
    let payload = decoded[1]
    defer { withExtendedLifetime(payload) {} }
    guard let claims = try? JSON.parse(payload.bytes, .tolerant), claims.kind == .object else {
      return nil
    }
    return claims
  }
}
