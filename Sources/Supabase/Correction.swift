public import Base

/// A change or a deletion of a stored row.
public struct Correction {
  public let id: UUID
  /// The row's `updated_at`, as the server wrote it: with another one the row stays as it is.
  public let version: String
  /// The changed columns; nil: the row is deleted.
  public let columns: JSON?
  public let changeID: UUID

  public init(id: UUID, version: String, columns: JSON?, changeID: UUID) {
    (self.id, self.version, self.columns, self.changeID) = (id, version, columns, changeID)
  }

  /// The body of a request for this row alone. `idColumn`: for the id of the change; empty: none.
  func body(_ idColumn: String) -> JSON {
    // PostgreSQL takes "now" as the time of its own clock.
    let body = columns?.shallowCopy ?? ["deleted_at": "now"]
    if !idColumn.isEmpty { body.set(member: idColumn, .uuid(changeID)) }
    return body
  }

  /// An item for a function that changes many rows.
  func item(_ org: UUID?, _ idColumn: String) -> JSON {
    let item: JSON = [
      "id": .uuid(id), "updated_at": .string(version),
      "operation": columns == nil ? "delete" : "change", "columns": columns ?? [:],
    ]
    if let org { item.set("org_id", .uuid(org)) }
    if !idColumn.isEmpty { item.set("change_id", .uuid(changeID)) }
    return item
  }
}
