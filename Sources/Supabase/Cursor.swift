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

  /// Where a row stands; nil when it has no id or no time.
  public init?(_ row: JSON) {
    guard let id = row.uuid("id"),
      let updatedAt = row.string("updated_at"), Cursor.isTimestamp(updatedAt)
    else { return nil }
    self.init(updatedAt: updatedAt, id: id)
  }

  /// The form that `init(_:)` reads.
  public var json: JSON { ["updated_at": .string(updatedAt), "id": .uuid(id)] }

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

  /// The cursor, or the present: one row with a time in the future must not hide all that is
  /// written until then.
  public func capped(at nowMS: Int64) -> Cursor {
    guard let ms = ISO8601.parse(updatedAt), ms > nowMS else { return self }
    return Cursor(updatedAt: ISO8601.format(ms: nowMS), id: Cursor.first)
  }

  /// Whether a page that was asked for behind `cursor` and ends here has come any further.
  public func isBeyond(_ cursor: Cursor) -> Bool {
    guard self != cursor, let mine = ISO8601.parse(updatedAt),
      let its = ISO8601.parse(cursor.updatedAt)
    else { return false }
    if mine != its { return mine > its }
    // Finer than a millisecond: by the texts, which one server writes alike.
    return updatedAt == cursor.updatedAt ? id > cursor.id : updatedAt > cursor.updatedAt
  }

  /// Whether text is a moment as the server writes it. It goes back into filters, so nothing else
  /// is let in; `infinity` among the rest, behind which there is nothing more to be read.
  private static func isTimestamp(_ text: String) -> Bool {
    text.utf8.count <= 64 && ISO8601.parse(text) != nil
  }

  private static var first: UUID { UUID(high: 0, low: 0) }
}
