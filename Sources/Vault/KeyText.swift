public import Base
import CSodium

/// Keys as base64 (RFC 4648 §4), for a host that is asked in JSON.
extension Key {
  /// With padding, in memory that is zeroed when it is released.
  public var base64: JSON {
    get throws(Failure) {
      let size = (Key.size + 2) / 3 * 4
      let text = try SecretBytes(count: size + 1, room: .guarded)
      defer { withExtendedLifetime(text) {} }
      sodium_bin2base64(
        text.start.assumingMemoryBound(to: CChar.self), text.count,
        secret.start.assumingMemoryBound(to: UInt8.self), Key.size, sodium_base64_VARIANT_ORIGINAL)
      return .string(UnsafeRawBufferPointer(rebasing: text.bytes[..<size]))
    }
  }

  /// The bytes of a text; nil when it is not base64. They may be no key: their number is not checked.
  public static func bytes(base64 text: JSON) throws(Failure) -> SecretBytes? {
    guard let text = try SecretBytes.text(of: text) else { return nil }
    let room = try SecretBytes(count: text.count, room: .guarded)
    var count = 0
    guard
      sodium_base642bin(
        room.start.assumingMemoryBound(to: UInt8.self), room.count,
        text.start.assumingMemoryBound(to: CChar.self), text.count, nil, &count, nil,
        sodium_base64_VARIANT_ORIGINAL) == 0
    else { return nil }
    return try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: room.bytes[..<count]))
  }
}
