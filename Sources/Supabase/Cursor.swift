public import Base
import Policy

/// Where a delta read stands: the last row's `updated_at`, as the server wrote it, and its id.
public struct Cursor: Equatable, Sendable {
  /// With its microseconds: cut to milliseconds it would read rows again, or miss them.
  public var updatedAt: String
  public var id: UUID

  public init(updatedAt: String, id: UUID) {
    self.updatedAt = updatedAt
    self.id = id
  }

  /// So many seconds earlier. `updated_at` is set when a row is written and seen when its
  /// transaction ends, so rows can appear behind a cursor that has passed them.
  public func overlapped(seconds: Int64) -> Cursor {
    let whole = 19  // YYYY-MM-DDTHH:MM:SS
    let text = Array(updatedAt.utf8)
    guard text.count > whole,
      let ms = ISO8601.parse(String(decoding: text[..<whole], as: UTF8.self) + "Z")
    else { return Cursor(updatedAt: updatedAt, id: Cursor.first) }
    let (shift, tooLong) = seconds.multipliedReportingOverflow(by: 1_000)
    let (earlier, overflow) = ms.subtractingReportingOverflow(tooLong ? 0 : shift)
    let moved = Array(ISO8601.format(ms: overflow ? ms : earlier).utf8)[..<whole]
    return Cursor(
      updatedAt: String(decoding: moved + text[whole...], as: UTF8.self), id: Cursor.first)
  }

  /// Whether text can be the server's timestamp. It goes back into filters, so nothing that has a
  /// meaning there is let in.
  static func isTimestamp(_ text: String) -> Bool {
    let bytes = text.utf8
    return !bytes.isEmpty && bytes.count <= 64
      && bytes.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: ":"), UInt8(ascii: "."),
          UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: " "):
          return true
        default: return false
        }
      }
  }

  private static var first: UUID { UUID(high: 0, low: 0) }
}
