public import Base
import Policy

/// The position of a delta read: `updated_at` and id of the last row that was read.
///
/// Pages come in the order (`updated_at`, `id`), and the next page starts after the cursor. Rows
/// can appear behind a cursor that has passed them, because `updated_at` is set when a row is
/// written and the row becomes visible when its transaction commits. A new delta read therefore
/// starts `overlapped` some seconds earlier, and never after the present (`capped`). A page that
/// does not bring the cursor further (`isBeyond`) ends the read, so that a faulty server cannot
/// make it endless.
public struct Cursor: Equatable, Sendable {
  /// The text of the server, with microseconds. Cut to milliseconds, rows would be read twice or
  /// missed.
  public var updatedAt: String
  public var id: UUID

  public init(updatedAt: String, id: UUID) {
    self.updatedAt = updatedAt
    self.id = id
  }

  /// The position of a row; nil when it has no id or no time.
  init?(id: UUID?, updatedAt: String?) {
    guard let id, let updatedAt, Cursor.isTimestamp(updatedAt) else { return nil }
    self.init(updatedAt: updatedAt, id: id)
  }

  /// A stored position.
  public init?(_ stored: JSON) {
    self.init(id: stored.uuid("id"), updatedAt: stored.string("updated_at"))
  }

  /// For storing, in the form that `init(_:)` reads.
  public var json: JSON { ["updated_at": .string(updatedAt), "id": .uuid(id)] }

  /// The position so many seconds earlier.
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

  /// The cursor, or the present if that is earlier. One row with a time in the future must not hide
  /// all rows that are written until then.
  public func capped(at nowMS: Int64) -> Cursor {
    guard let ms = ISO8601.parse(updatedAt), ms > nowMS else { return self }
    return Cursor(updatedAt: ISO8601.format(ms: nowMS), id: Cursor.first)
  }

  /// Whether this is a later position than `cursor`.
  public func isBeyond(_ cursor: Cursor) -> Bool {
    guard self != cursor, let mine = ISO8601.parse(updatedAt),
      let its = ISO8601.parse(cursor.updatedAt)
    else { return false }
    if mine != its { return mine > its }
    // Below a millisecond, compare the texts: one server writes all times in the same form.
    return updatedAt == cursor.updatedAt ? id > cursor.id : updatedAt > cursor.updatedAt
  }

  /// Whether the text is a time in the form of the server. It is put into filters, so nothing else
  /// is accepted; not even `infinity`, after which no row would ever come.
  private static func isTimestamp(_ text: String) -> Bool {
    text.utf8.count <= 64 && ISO8601.parse(text) != nil
  }

  private static var first: UUID { UUID(high: 0, low: 0) }
}
