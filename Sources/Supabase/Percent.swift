import Base
import Vault

/// Percent-encoding (RFC 3986, section 2.1).
enum Percent {
  /// Encodes all bytes except letters, digits and `-._~` as `%XX`.
  static func encode(_ text: String) -> String {
    var result: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) {
        result.append(byte)
      } else {
        result.append(UInt8(ascii: "%"))
        result.append(upper(byte >> 4))
        result.append(upper(byte & 0xF))
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Decodes a name or value of a query, where `+` means a space. Malformed escapes stay as they
  /// are.
  static func decode(_ text: Slice<UnsafeRawBufferPointer>) throws(Failure) -> SecretBytes {
    try SecretBytes.written(capacity: text.count, room: .heap) { room in
      var used = 0
      var at = text.startIndex
      while at < text.endIndex {
        var byte = text[at]
        if byte == UInt8(ascii: "+") {
          byte = UInt8(ascii: " ")
        } else if byte == UInt8(ascii: "%"), text.endIndex - at > 2,
          let high = Hex.value(text[at + 1]), let low = Hex.value(text[at + 2])
        {
          byte = high << 4 | low
          at += 2
        }
        room[used] = byte
        used += 1
        at += 1
      }
      return used
    }
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): return true
    default: return ASCII.isLetter(byte) || ASCII.isDigit(byte)
    }
  }

  private static func upper(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + (value - 10)
  }
}
