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
  public let page: Page<Cursor>
  /// The ids of the rows that have a place, usable or not.
  public let ids: [UUID]

  /// The size of the largest row that is cached, as text.
  public static var maxBytes: Int { 65_536 }

  /// Reads the rows, and hands the usable ones to `take`, one after another: together they would cost
  /// twice as much as the answer. A row is usable with an id, a time and a name, if it is of this
  /// organisation, and not too large.
  public init<Failed: Error>(
    _ answer: ResponseRows, org: UUID?, columns: [String],
    _ take: (ContactRow) throws(Failed) -> Void
  ) throws(Failed) {
    var ids: [UUID] = []
    page = try answer.page { (row) throws(Failed) in
      guard let id = row.uuid("id") else { return (nil, row.lacks("id")) }
      guard let place = Cursor(id: id, updatedAt: row.string("updated_at")) else {
        return (nil, row.lacks("updated_at"))
      }
      ids.append(id)
      if let fault = ContactsPage.fault(of: row, org) { return (place, fault) }
      guard let contact = ContactsPage.contact(row, place, columns) else {
        return (place, .ofRow)
      }
      try take(contact)
      return (place, nil)
    }
    self.ids = ids
  }

  private static func fault(of row: ResponseRow, _ org: UUID?) -> RowFault? {
    if let org, row.uuid("org_id") != org { return row.lacks("org_id") }
    guard row.isTextOrNull("deleted_at") else { return row.lacks("deleted_at") }
    if row.string("deleted_at") != nil { return nil }
    guard row.string("name") != nil else { return row.lacks("name") }
    return row.isTextOrNull("municipality") ? nil : row.lacks("municipality")
  }

  private static func contact(
    _ row: ResponseRow, _ place: Cursor, _ columns: [String]
  ) -> ContactRow? {
    if row.string("deleted_at") != nil {
      return ContactRow(id: place.id, updatedAt: place.updatedAt)
    }
    // What was left out may be in a column that is cached.
    guard row.isWhole else { return nil }
    // A server that sends other columns must not fill the cache with them.
    guard let text = try? row.text(of: columns), text.count <= maxBytes else { return nil }
    text.fit()
    // By a column that is not cached, nobody finds a contact.
    return ContactRow(
      id: place.id, updatedAt: place.updatedAt, text: text,
      name: columns.contains("name") ? row.string("name") ?? "" : "",
      municipality: columns.contains("municipality") ? row.string("municipality") ?? "" : "")
  }
}

/// A response to `RestRequests.contactVersions`.
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
