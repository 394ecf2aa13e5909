public import Base

/// One contact of a page.
public struct ContactRow {
  public var id: UUID
  /// `updated_at`, as the server wrote it.
  public var updatedAt: String
  /// The columns that may be cached, as text: as a value they would take up to 9 times as much memory.
  /// nil for a tombstone, which removes the contact.
  public var text: JSONText?
  /// Texts of cached columns, by which a contact is found; empty for other columns.
  public var name = ""
  public var municipality = ""
}

/// A response to `RestRequests.contactsPage` or `contacts`.
public struct ContactsPage {
  /// The ids of the rows that have a place, usable or not.
  public private(set) var ids: [UUID] = []
  /// The number of rows, usable or not.
  public private(set) var count = 0
  /// The number of unusable rows: without an id, a time or a name, of another organisation, or too
  /// large.
  public private(set) var skipped = 0
  /// The position of the last row that has one, usable or not.
  public private(set) var last: Cursor?

  /// The size of the largest row that is cached, as text.
  public static var maxBytes: Int { 65_536 }

  /// Reads the rows, and hands the usable ones to `take`, one after another: together they would cost
  /// twice as much as the answer.
  public init<Failed: Error>(
    _ answer: ResponseRows, org: UUID?, columns: [String],
    _ take: (ContactRow) throws(Failed) -> Void
  ) throws(Failed) {
    try answer.forEachRow { (row) throws(Failed) in
      count += 1
      guard let place = Cursor(id: row.uuid("id"), updatedAt: row.string("updated_at")) else {
        skipped += 1
        return
      }
      last = place
      ids.append(place.id)
      guard let contact = ContactsPage.contact(row, place, org, columns) else {
        skipped += 1
        return
      }
      try take(contact)
    }
  }

  private static func contact(
    _ row: ResponseRow, _ place: Cursor, _ org: UUID?, _ columns: [String]
  ) -> ContactRow? {
    guard org == nil || row.uuid("org_id") == org, row.isTextOrNull("deleted_at") else {
      return nil
    }
    if row.string("deleted_at") != nil {
      return ContactRow(id: place.id, updatedAt: place.updatedAt)
    }
    guard let name = row.string("name"), row.isTextOrNull("municipality") else { return nil }
    let municipality = row.string("municipality") ?? ""
    // A server that sends other columns must not fill the cache with them.
    guard let text = try? row.text(of: columns), text.count <= maxBytes else { return nil }
    text.fit()
    // By a column that is not cached, nobody finds a contact.
    return ContactRow(
      id: place.id, updatedAt: place.updatedAt, text: text,
      name: columns.contains("name") ? name : "",
      municipality: columns.contains("municipality") ? municipality : "")
  }
}

/// A response to `RestRequests.contactVersions`.
public struct VersionsPage {
  public struct Row {
    public var id: UUID
    /// `updated_at`; nil when the server sends none.
    public var version: String?
  }

  public var rows: [Row] = []
  public var count = 0
  /// The number of rows without an id.
  public var skipped: Int { count - rows.count }

  /// nil when the body is not an array.
  public init?(_ answer: ResponseRows?) {
    guard let answer else { return nil }
    count = answer.count
    answer.forEachRow { row in
      guard let id = row.uuid("id") else { return }
      rows.append(Row(id: id, version: row.string("updated_at")))
    }
  }
}
