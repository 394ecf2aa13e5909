import Base
import Policy

/// Compares values that a user wrote or saw with those of the server's row.
///
/// The server may write a value in another form: a time in another zone, a number with other decimals, a UUID in
/// lower case, a number that was sent as a text. Everything else is another value, which others may have set.
enum StoredRow {
  /// Whether the column has this value, in whatever form the server writes it.
  static func holds(_ stored: JSON, _ value: JSON) -> Bool {
    if stored == value { return true }
    switch (stored.kind, value.kind) {
    case (.string, .string):
      guard let left = stored.string, let right = value.string else { return false }
      return isSame(left, right)
    case (.array, .array):
      return stored.count == value.count
        && zip(stored.elements, value.elements).allSatisfy { holds($0, $1) }
    case (.object, .object):
      return stored.count == value.count
        && value.members.allSatisfy { name, value in
          stored[member: name].map { holds($0, value) } ?? false
        }
    default:
      let (left, right) = (scalar(stored), scalar(value))
      return isSameNumber(left, right) ?? (left.kind == .boolean && left == right)
    }
  }

  /// The same of a value that was sent: the server may have removed spaces at its ends.
  static func mayHold(_ stored: JSON, _ value: JSON) -> Bool {
    if holds(stored, value) { return true }
    guard let left = stored.string, let right = value.string else { return false }
    return trimmed(left).elementsEqual(trimmed(right))
  }

  /// Whether the row under an item's id is another one. The server may fill in what is null.
  static func isOther(_ row: JSON, than payload: JSON) -> Bool {
    payload.members.contains { name, value in
      !value.isNull && row[member: name].map { !mayHold($0, value) } ?? false
    }
  }

  /// Whether two numbers are the same one; nil: they are not both numbers. Integers are compared as
  /// such: from 2^53 on, some share a double.
  private static func isSameNumber(_ left: JSON, _ right: JSON) -> Bool? {
    if let left = left.int, let right = right.int { return left == right }
    guard let left = left.number, let right = right.number else { return nil }
    return left == right
  }

  /// The number or truth value that a text has; any other value is returned.
  private static func scalar(_ value: JSON) -> JSON {
    let read = value.withUTF8 { $0.count <= 40 ? try? JSON.parse($0, scalars: true) : JSON?.none }
    switch read??.kind {
    case .integer, .real, .boolean: return (read ?? nil) ?? value
    default: return value
    }
  }

  private static func isSame(_ left: String, _ right: String) -> Bool {
    if let left = ISO8601.parseUS(left), let right = ISO8601.parseUS(right) { return left == right }
    if let left = UUID(left), let right = UUID(right) { return left == right }
    return left.utf8.count < right.utf8.count
      ? isLengthened(Array(left.utf8), Array(right.utf8))
      : isLengthened(Array(right.utf8), Array(left.utf8))
  }

  /// 10:00 is stored as 10:00:00, and 2026-01-01 as a time at midnight.
  private static func isLengthened(_ short: [UInt8], _ long: [UInt8]) -> Bool {
    let marks = [UInt8](":-.".utf8)
    let rest = long.dropFirst(short.count)
    guard long.starts(with: short), let first = rest.first, [UInt8](":. T".utf8).contains(first),
      short.contains(marks[0]) || short.count == 10 && short[4] == marks[1] && short[7] == marks[1]
    else { return false }
    return short.allSatisfy { ASCII.isDigit($0) || marks.contains($0) }
      && rest.allSatisfy { [UInt8]("0:.+- TZ".utf8).contains($0) }
  }

  private static func trimmed(_ text: String) -> ArraySlice<UInt8> {
    var bytes = Array(text.utf8)[...]
    while let first = bytes.first, first <= UInt8(ascii: " ") { bytes.removeFirst() }
    while let last = bytes.last, last <= UInt8(ascii: " ") { bytes.removeLast() }
    return bytes
  }
}
