import Base
import Policy

/// Compares a payload with the row that the server has under the item's id.
///
/// The server may write a value in another form (a time in another zone, a number with other decimals,
/// text in lower case, spaces removed) and may fill in what is null. None of that is a difference:
/// only what no such rule explains tells that the row is another one.
enum StoredRow {
  /// Whether the column has this very value, in whatever form the server writes a number or a time.
  static func holds(_ stored: JSON, _ value: JSON) -> Bool {
    if stored == value { return true }
    if let isSame = isSameNumber(stored, value) { return isSame }
    guard let left = stored.string.flatMap({ ISO8601.parse($0) }),
      let right = value.string.flatMap({ ISO8601.parse($0) })
    else { return false }
    return left == right
  }

  /// The same after the value was sent: the server may have trimmed it, or put it into lower case.
  static func mayHold(_ stored: JSON, _ value: JSON) -> Bool {
    stored.isNull == value.isNull && !differs(value, stored)
  }

  static func isOther(_ row: JSON, than payload: JSON) -> Bool {
    payload.members.contains { name, value in
      row[member: name].map { differs(value, $0) } ?? false
    }
  }

  /// Whether two numbers are the same one; nil: they are not both numbers. Integers are compared as
  /// such: from 2^53 on, some share a double.
  private static func isSameNumber(_ left: JSON, _ right: JSON) -> Bool? {
    if let left = left.int, let right = right.int { return left == right }
    guard let left = left.number, let right = right.number else { return nil }
    return left == right
  }

  private static func differs(_ sent: JSON, _ stored: JSON) -> Bool {
    if sent.isNull || sent == stored { return false }
    if stored.isNull { return true }
    if let isSame = isSameNumber(sent, stored) { return !isSame }
    if let left = sent.string, let right = stored.string { return differs(left, right) }
    guard sent.kind == stored.kind else { return false }
    switch sent.kind {
    case .array:
      let pairs = zip(sent.elements, stored.elements)
      return sent.count != stored.count || pairs.contains { differs($0, $1) }
    case .object:
      return sent.members.contains { name, value in
        stored[member: name].map { differs(value, $0) } ?? !value.isNull
      }
    default: return true
    }
  }

  private static func differs(_ sent: String, _ stored: String) -> Bool {
    if let left = ISO8601.parse(sent), let right = ISO8601.parse(stored) { return left != right }
    let left = plain(sent)
    let right = plain(stored)
    if left == right { return false }
    // 10:00 is stored as 10:00:00, and 2026-01-01 may be stored as a time.
    let isShorter = left.count < right.count
    let (short, long) = isShorter ? (left, right) : (right, left)
    let isValue = short.first.map(ASCII.isDigit) ?? false
    return !(isValue && Array(long.prefix(short.count)) == short && !long.contains { isWord($0) })
  }

  private static func plain(_ text: String) -> [UInt8] {
    text.utf8.filter { $0 > UInt8(ascii: " ") }.map { ASCII.lowered($0) }
  }

  /// A letter other than those in times: T and Z.
  private static func isWord(_ byte: UInt8) -> Bool {
    byte >= 0x80
      || byte >= UInt8(ascii: "a") && byte != UInt8(ascii: "t") && byte != UInt8(ascii: "z")
  }
}
