public import Base

/// One contact of a page.
public struct ContactRow {
  public var id: UUID
  /// `updated_at`, as the server wrote it.
  public var updatedAt: String
  /// The columns that may be cached; nil for a tombstone, which removes the contact.
  public var json: JSON?
}

/// A response to `RestRequests.contactsPage` or `contacts`.
public struct ContactsPage {
  public var rows: [ContactRow] = []
  /// The ids of the rows that have a place, usable or not.
  public var ids: [UUID] = []
  /// The number of rows, usable or not.
  public var count = 0
  /// The number of unusable rows: without an id, a time or a name, of another organisation, or too
  /// large.
  public var skipped = 0
  /// The position of the last row that has one, usable or not.
  public var last: Cursor?

  /// The size of the largest row that is cached, as text.
  public static var maxBytes: Int { 65_536 }

  /// nil when the body is not an array.
  public init?(_ body: JSON?, org: UUID?, columns: [String]) {
    guard let body, body.kind == .array else { return nil }
    for row in body.elements {
      count += 1
      guard let place = Cursor(row) else {
        skipped += 1
        continue
      }
      last = place
      ids.append(place.id)
      guard let contact = ContactsPage.contact(row, place, org, columns) else {
        skipped += 1
        continue
      }
      rows.append(contact)
    }
  }

  private static func contact(
    _ row: JSON, _ place: Cursor, _ org: UUID?, _ columns: [String]
  ) -> ContactRow? {
    guard org == nil || row.uuid("org_id") == org,
      isTextOrNull(row["deleted_at"])
    else { return nil }
    if row.string("deleted_at") != nil {
      return ContactRow(id: place.id, updatedAt: place.updatedAt, json: nil)
    }
    guard row.string("name") != nil, isTextOrNull(row["municipality"]) else { return nil }
    // Copy the requested columns only: a server that sends others must not fill the cache with
    // them.
    let json = [:] as JSON
    for column in columns {
      if let value = row[member: column] { json.set(member: column, value) }
    }
    guard let text = try? json.text(), text.count <= maxBytes else { return nil }
    return ContactRow(id: place.id, updatedAt: place.updatedAt, json: json)
  }

  private static func isTextOrNull(_ value: JSON?) -> Bool {
    guard let value else { return true }
    return value.isNull || value.kind == .string
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
  public init?(_ body: JSON?) {
    guard let body, body.kind == .array else { return nil }
    count = body.count
    for row in body.elements {
      guard let id = row.uuid("id") else { continue }
      rows.append(Row(id: id, version: row.string("updated_at")))
    }
  }
}
