public import Base

/// What became of the last items that left the queue, by their tags: a bounded record of those that
/// the server has stored and those that the user has cancelled.
public struct StoredItemTable {
  public enum Fate: Int64, Sendable {
    case stored = 0
    case cancelled = 1
    /// The user has cancelled it, and the server may have it.
    case unknownOutcome = 2
  }

  /// An item that left the queue, and when, in server time.
  public struct Record: Equatable, Sendable {
    public let fate: Fate
    public let ms: Int64

    public init(_ fate: Fate, ms: Int64) {
      self.fate = fate
      self.ms = ms
    }
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Record items within the transaction that removes them from the queue. Of all items it keeps at
  /// most `limit`, and none from before `since`.
  public func add(
    _ items: [[UInt8]], _ fate: Fate, now: Int64, limit: Int64, since: Int64
  ) throws(Failure) {
    for item in items {
      try database.run(
        "INSERT INTO stored_item(item, stored_ms, fate) VALUES (?, ?, ?)", .blob(item), .int(now),
        .int(fate.rawValue))
      try database.lastInsertedRow()
    }
    // The first row that is new enough is nearly always the first of all.
    try database.run(
      """
      DELETE FROM stored_item WHERE seq <= (SELECT max(seq) FROM stored_item) - ?1 OR seq <
        (SELECT seq FROM stored_item WHERE stored_ms >= ?2 ORDER BY seq LIMIT 1)
      """, .int(limit), .int(since))
  }

  /// What became of an item last; nil: it never left the queue, or did before `since`, or longer ago
  /// than the record reaches.
  public func find(_ item: [UInt8], since: Int64) throws(Failure) -> Record? {
    let found = try database.first(
      "SELECT fate, stored_ms FROM stored_item WHERE item = ? ORDER BY seq DESC LIMIT 1",
      .blob(item)
    ) { (row) throws(Failure) in (fate: row.int(0), ms: row.int(1)) }
    guard let found, found.ms >= since, let fate = Fate(rawValue: found.fate) else { return nil }
    return Record(fate, ms: found.ms)
  }
}
