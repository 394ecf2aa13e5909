public import Base

/// The last items that the server has stored, by their tags: a bounded record.
///
/// Its index has three columns, so that `SalvageCount` does not take it for the queue's.
public struct StoredItemTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Record items as stored, within the transaction that removes them from the queue. Of all items
  /// it keeps at most `limit`, and none that was stored before `since`.
  public func add(
    _ items: [[UInt8]], now: Int64, limit: Int64, since: Int64
  ) throws(Failure) {
    for item in items {
      try database.run(
        "INSERT INTO stored_item(item, stored_ms) VALUES (?, ?)", .blob(item), .int(now))
    }
    // The first row that is new enough is nearly always the first of all.
    try database.run(
      """
      DELETE FROM stored_item WHERE seq <= (SELECT max(seq) FROM stored_item) - ?1 OR seq <
        (SELECT seq FROM stored_item WHERE stored_ms >= ?2 ORDER BY seq LIMIT 1)
      """, .int(limit), .int(since))
  }

  /// When the item was stored; nil: it was not, or longer ago than the record reaches.
  public func storedMS(_ item: [UInt8]) throws(Failure) -> Int64? {
    try database.first(
      "SELECT stored_ms FROM stored_item WHERE item = ? ORDER BY stored_ms DESC LIMIT 1",
      .blob(item)
    ) { (row) throws(Failure) in row.int(0) }
  }
}
