public import Base
import Policy

/// One row of a page.
public struct PulledRow {
  public var id: UUID
  /// `updated_at`, as the server wrote it.
  public var updatedAt: String
  /// The columns that may be cached, as text: as a value they would take up to 9 times as much memory.
  /// nil for a tombstone, which removes the row.
  public var text: JSONText?
  /// The time by which an own row is listed.
  public var listedMS: Int64?
  /// Texts of cached columns, by which a contact is found; empty for other columns.
  public var name = ""
  public var municipality = ""
}

/// A response to `RestRequests.page` or `rows`.
public struct RowsPage {
  public let page: Page<Cursor>
  /// The ids of the rows that have a place, usable or not.
  public let ids: [UUID]

  /// The size of the largest contact that is cached, as text.
  public static var maxBytes: Int { 65_536 }

  /// Reads the rows, and hands the usable ones to `take`, one after another: together they would cost
  /// twice as much as the answer. A row is usable with an id and a time, a contact also with a name, an own row
  /// with the time by which it is listed; if it is of this organisation, and not too large.
  public init<Failed: Error>(
    _ answer: ResponseRows, of source: RowSource, _ take: (PulledRow) throws(Failed) -> Void
  ) throws(Failed) {
    var ids: [UUID] = []
    page = try answer.page { (row) throws(Failed) in
      guard let id = row.uuid("id") else { return (nil, row.lacks("id")) }
      guard let place = Cursor(id: id, updatedAt: row.string("updated_at")) else {
        return (nil, row.lacks("updated_at"))
      }
      ids.append(id)
      if let org = source.org, row.uuid("org_id") != org { return (place, row.lacks("org_id")) }
      if source.hasMarks {
        guard row.isTextOrNull("deleted_at") else { return (place, row.lacks("deleted_at")) }
        if row.string("deleted_at") != nil {
          try take(PulledRow(id: id, updatedAt: place.updatedAt))
          return (place, nil)
        }
      }
      var taken = PulledRow(id: id, updatedAt: place.updatedAt)
      if let fault = RowsPage.read(row, of: source, into: &taken) { return (place, fault) }
      // A server that sends other columns must not fill the cache with them.
      let most = source.kind == nil ? RowsPage.maxBytes : OwnRows.maxBytes
      guard let text = try? row.text(of: source.kept), text.count <= most
      else { return (place, .ofRow) }
      text.fit()
      taken.text = text
      try take(taken)
      return (place, nil)
    }
    self.ids = ids
  }

  /// Read what the cache has of the row beside its text; returns why the row cannot be used.
  private static func read(
    _ row: JSONRow, of source: RowSource, into taken: inout PulledRow
  ) -> RowFault? {
    if let time = source.time {
      let text = time == "updated_at" ? taken.updatedAt : row.string(named: time)
      taken.listedMS = text.flatMap { ISO8601.parse($0) }
      return taken.listedMS == nil ? row.lacks(named: time) : nil
    }
    guard let name = row.string("name") else { return row.lacks("name") }
    guard row.isTextOrNull("municipality") else { return row.lacks("municipality") }
    // By a column that is not cached, nobody finds a contact.
    if source.kept.contains("name") { taken.name = name }
    if source.kept.contains("municipality") {
      taken.municipality = row.string("municipality") ?? ""
    }
    return nil
  }
}

/// A response to `RestRequests.versions`.
public struct VersionsPage {
  public struct Row {
    public var id: UUID
    /// `updated_at`; nil when the server sends none.
    public var version: String?
  }

  public let page: Page<UUID>
  public let rows: [Row]

  public init(_ answer: ResponseRows) {
    var rows: [Row] = []
    page = answer.page { row in
      guard let id = row.uuid("id") else { return (nil, row.lacks("id")) }
      rows.append(Row(id: id, version: row.string("updated_at")))
      return (id, nil)
    }
    self.rows = rows
  }
}
