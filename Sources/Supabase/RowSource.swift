public import Base
import Policy

/// A set of rows that the cache mirrors: which rows of a table a pull asks for, and what it keeps of them.
public final class RowSource {
  /// The kind whose rows of the user these are; nil: contacts.
  public let kind: QueueKind?
  public let table: String
  /// nil in an app without organisations.
  public let org: UUID?
  /// The columns that are kept.
  let kept: [String]
  /// The columns of a request.
  let requested: [String]
  /// The conditions of every request, as a part of the URL.
  let filter: String
  /// Whether a row can have `deleted_at`, and is gone then.
  let hasMarks: Bool
  /// The column with the time by which rows are listed; nil: they are not.
  let time: String?
  /// Rows before this time are not kept; nil: all are.
  public let sinceMS: Int64?
  /// What was read under another form must be read anew.
  public let form: [String]

  /// The contacts of an organisation, with the columns that may be cached.
  public static func contacts(_ backend: Backend, org: UUID?) -> RowSource {
    var requested = backend.contactColumns
    for column in marks where !requested.contains(column) { requested.append(column) }
    return RowSource(
      kind: nil, table: backend.contactsTable, org: org, kept: backend.contactColumns,
      requested: requested, filter: "", hasMarks: true, time: nil, sinceMS: nil,
      form: backend.contactColumns)
  }

  private static var marks: [String] { ["updated_at", "deleted_at"] }

  /// The user's own rows of a kind, of the last days before `nowMS`, by the server's clock; nil: none are kept.
  public static func own(
    _ kind: QueueKind, org: UUID?, user: UUID, nowMS: Int64
  ) -> RowSource? {
    guard let own = kind.own else { return nil }
    let sinceMS = own.sinceMS(nowMS)
    let since = Percent.encode(ISO8601.format(ms: sinceMS))
    return RowSource(
      kind: kind, table: kind.table, org: org, kept: keys + own.columns,
      requested: own.selected + (org == nil ? [] : organisation),
      filter: "&user_id=eq.\(user.text)&\(Percent.encode(own.time))=gte.\(since)",
      hasMarks: own.deletion == .deletedAt, time: own.time, sinceMS: sinceMS,
      form: own.selected + ["\(own.days)", own.time])
  }

  /// Whether rows are left out that are to be kept, because the clock was ahead by more than a minute.
  public func isAhead(of nowMS: Int64) -> Bool {
    guard let sinceMS, let own = kind?.own else { return false }
    return sinceMS - own.sinceMS(nowMS) > 60_000
  }

  private static var keys: [String] { ["id", "updated_at"] }
  private static var organisation: [String] { ["org_id"] }

  private init(
    kind: QueueKind?, table: String, org: UUID?, kept: [String], requested: [String],
    filter: String, hasMarks: Bool, time: String?, sinceMS: Int64?, form: [String]
  ) {
    (self.kind, self.table, self.org) = (kind, table, org)
    (self.kept, self.requested, self.filter) = (kept, requested, filter)
    (self.hasMarks, self.time, self.sinceMS, self.form) = (hasMarks, time, sinceMS, form)
  }

  /// The name in the log.
  public var name: String { kind?.name ?? "contacts" }
}

extension OwnRows {
  /// Rows before this time are not kept. `nowMS`: the server's time.
  fileprivate func sinceMS(_ nowMS: Int64) -> Int64 { nowMS - days * 86_400_000 }
}
