public import Base

/// Counts the items that a salvage could not carry over.
///
/// A damaged file names every item three times: in the table's row, in the index of items and in
/// `queue_ready`. Each entry that is found is a piece of evidence; an item is lost when there is
/// evidence of it and it is not in the queue. So a damaged page costs no item without a word. When
/// pages are missing whose kind is unknown, and the two indexes do not agree, the count is raised to
/// what these pages can have held, up to the sequence numbers for which there is no evidence: then it
/// is an upper bound.
public struct SalvageCount {
  let database: Database

  /// Within a transaction that ends with `end`.
  public init(_ database: Database) throws(Failure) {
    self.database = database
    try database.execute(
      """
      DROP TABLE IF EXISTS temp.evidence;
      CREATE TEMP TABLE evidence(source INTEGER, seq INTEGER, item BLOB)
      """)
  }

  public func end() throws(Failure) { try database.execute("DROP TABLE temp.evidence") }

  private enum Source: Int64 {
    case table = 0
    case items = 1
    case ready = 2
    /// The last sequence number that was given.
    case sequence = 3
  }

  private func add(_ source: Source, _ sequence: Int64, _ item: [UInt8]?) throws(Failure) {
    try database.run(
      "INSERT INTO temp.evidence(source, seq, item) VALUES (?, ?, ?)", .int(source.rawValue),
      .int(sequence), Value(item))
  }

  /// A row of the queue, readable or not.
  public func add(_ row: QueueRow, _ record: Salvage.Record) throws(Failure) {
    try add(.table, record.rowID, row.item)
  }

  /// A row of another table: `sqlite_sequence` tells how many items there were.
  public func add(_ record: Salvage.Record) throws(Failure) {
    guard record.columns.count == 2, record.columns[0].text == "queue",
      let last = record.columns[1].int
    else { return }
    try add(.sequence, last, nil)
  }

  /// An index's entry: (item, seq), or (owner, state, group, batch key, seq, …).
  public func add(entry columns: [Value]) throws(Failure) {
    guard let first = columns[0].blob, first.count == 16, let sequence = columns.last?.int else {
      return
    }
    if columns.count == 2 {
      try add(.items, sequence, first)
    } else if columns.count >= 5, columns[3].blob?.count == 16 {
      try add(.ready, sequence, nil)
    }
  }

  /// How many items are lost. `strayPages`: pages that may have held items.
  public func lost(strayPages: Int64, pageSize: Int) throws(Failure) -> Int64 {
    let items = try number(
      """
      SELECT count(DISTINCT item) FROM temp.evidence
      WHERE item IS NOT NULL AND item NOT IN (SELECT item FROM queue)
      """)
    let sequences = try number(
      """
      SELECT count(DISTINCT seq) FROM temp.evidence WHERE source < 3 AND seq NOT IN
        (SELECT e.seq FROM temp.evidence e JOIN queue q ON q.item = e.item)
      """)
    let known = max(items, sequences)
    guard strayPages > 0, try !indexesAgree() else { return known }
    // A row has four tags and a sealed body of at least 64 bytes.
    let room = strayPages * Int64(pageSize / 180)
    let last = try number("SELECT ifnull(max(seq), 0) FROM temp.evidence WHERE source = 3")
    guard last > 0 else { return known + room }
    let seen = try number("SELECT count(DISTINCT seq) FROM temp.evidence WHERE source < 3")
    return known + min(room, max(0, last - seen))
  }

  private func indexesAgree() throws(Failure) -> Bool {
    try number(
      """
      SELECT count(*) > 0 AND count(*) = sum(n = 3) FROM (SELECT sum(DISTINCT source) AS n
        FROM temp.evidence WHERE source IN (1, 2) GROUP BY seq)
      """) == 1
  }

  private func number(_ sql: StaticCString) throws(Failure) -> Int64 {
    try database.first(sql) { (row) throws(Failure) in row.int(0) } ?? 0
  }
}
