public import Base

/// A contact of a page.
public struct ContactRow {
  public var id: UUID
  /// As the server wrote it.
  public var updatedAt: String
  /// A tombstone: it is to be removed.
  public var deleted: Bool
  /// The row as sent.
  public var json: JSON
}

/// The answers to `RestRequests.contactsPage` and `RestRequests.contactIDs`.
public enum ContactsReply {
  /// nil when the answer is not an array of such rows.
  public static func rows(_ body: JSON?) -> [ContactRow]? {
    guard let body, body.kind == .array else { return nil }
    var result: [ContactRow] = []
    result.reserveCapacity(body.count)
    for row in body.elements {
      guard let id = row["id"]?.string.flatMap({ UUID($0) }),
        let updatedAt = row["updated_at"]?.string, Cursor.isTimestamp(updatedAt)
      else { return nil }
      let deletedAt = row["deleted_at"] ?? .null
      result.append(
        ContactRow(id: id, updatedAt: updatedAt, deleted: !deletedAt.isNull, json: row))
    }
    return result
  }

  public static func ids(_ body: JSON?) -> [UUID]? { Rows.ids(body) }
}
