public import Base

/// The result of the upload function for one row.
public struct RowResult: Equatable {
  public enum Status: String, CaseIterable, Sendable {
    case stored
    /// The row was stored before by the same user.
    case duplicate
    /// The id exists, but the row belongs to another user or is not visible.
    case conflict
    case rejected
    /// A correction: others have changed the row, which is in the result.
    case changed
    /// A correction: the row is not there, or not visible.
    case gone
    /// A correction: the user may not change the row.
    case notAllowed = "not_allowed"

    /// The server has the row.
    public var isStored: Bool { self == .stored || self == .duplicate }
  }

  public var id: UUID
  public var status: Status
  public var sqlstate: String?
  /// For developers.
  public var message: String?
  public var column: String?
  /// The stored row's `updated_at`.
  public var version: String?
  /// The row as others have changed it.
  public var row: JSON?

  public static func == (left: RowResult, right: RowResult) -> Bool {
    left.id == right.id && left.status == right.status && left.sqlstate == right.sqlstate
      && left.message == right.message && left.column == right.column
      && left.version == right.version && (left.row ?? .null) == (right.row ?? .null)
  }
}

extension [RowResult] {
  /// The ids of these rows.
  @inline(never)
  public func ids(of isIncluded: (RowResult) -> Bool) -> SortedUUIDSet {
    var ids: [UUID] = []
    for row in self where isIncluded(row) { ids.append(row.id) }
    return SortedUUIDSet(ids)
  }
}

/// The responses to `RestRequests.upload` and `RestRequests.readBack`.
public enum UploadReply {
  /// The ids in the response: the newly stored ones for an upload, the existing ones for a
  /// read-back. Nil when the body is not an array of such rows. `version` gets `updated_at` of each row that
  /// has one.
  public static func storedIDs(
    _ rows: ResponseRows?, version: (UUID, String) -> Void = { _, _ in }
  ) -> [UUID]? {
    guard let rows else { return nil }
    var result: [UUID] = []
    result.reserveCapacity(rows.count)
    for row in rows {
      guard let id = row.uuid("id") else { return nil }
      result.append(id)
      if let text = row.string("updated_at") { version(id, text) }
    }
    return result
  }

  /// The results of an upload function; nil when the body is not an array of such rows. Rows
  /// without an id are left out, and those of an id that is both stored and refused: they prove nothing.
  public static func rows(_ rows: ResponseRows?) -> [RowResult]? {
    guard let rows else { return nil }
    var result: [RowResult] = []
    for row in rows {
      guard let status = row.string("status").flatMap({ RowResult.Status(rawValue: $0) }) else {
        return nil
      }
      guard let id = row.uuid("id") else { continue }
      let sqlstate = row.string("sqlstate")
      let message = row.string("message")
      result.append(
        RowResult(
          id: id, status: status, sqlstate: sqlstate, message: message,
          column: row.string("column").flatMap { Identifier.isValid($0.utf8) ? $0 : nil }
            ?? ServerError.column(sqlstate, message, nil),
          version: row.string("updated_at"),
          row: row.value("row").flatMap { $0.kind == .object ? $0 : JSON?.none }))
    }
    let stored = result.ids { $0.status.isStored }
    let refused = result.ids { !$0.status.isStored }
    return result.filter { !stored.contains($0.id) || !refused.contains($0.id) }
  }
}
