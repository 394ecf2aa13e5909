public import Base

/// The queue: items that the server does not have yet, in the order of their sequence number.
///
/// `queue.state` and `queue.wait_reason` hold the numbers of `ItemState.Code` and `WaitReason`. The
/// statements name them as literals: where a partial index has a condition, SQLite plans a
/// statement with a bound state anew for each value.
public struct QueueTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  var dependencies: DependencyTable { DependencyTable(database) }

  /// Add an item with all that is known of it but its number, its retry group and its lease.
  public func insert(_ row: QueueRow) throws(Failure) -> Int64 {
    try database.transaction { () throws(Failure) in
      let added = try insertRow(row)
      // A constraint that is not ours can make SQLite ignore the row.
      guard added == 1 else { throw database.damage("an item was not stored") }
      let number = try database.lastInsertedRow()
      // For a trigger, SQLite keeps a journal of the statement: a tenth of what adding costs.
      try database.run(
        """
        INSERT INTO queue_count(owner, state, wait_reason, items) VALUES (?1, ?2, ?3, 1)
        ON CONFLICT(owner, state, wait_reason) DO UPDATE SET items = items + 1
        """, .blob(row.owner), .int(row.state.code.rawValue),
        .int(row.state.waitReason?.code ?? 0))
      return number
    }
  }

  private func insertRow(_ row: QueueRow) throws(Failure) -> Int {
    do throws(Failure) { return try insertWithNumber(row) } catch {
      // After the largest number of all, SQLite says that the disk is full.
      if error.code == .storageFull { _ = try lastNumber() }
      throw error
    }
  }

  private func insertWithNumber(_ row: QueueRow) throws(Failure) -> Int {
    try database.run(
      """
      INSERT INTO queue(item, owner, org, batch_key, state, wait_reason, since_ms, not_before_ms,
        attempts, history, edited, created_ms, size, list, listed_ms, body, rejection)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .blob(row.item), .blob(row.owner),
      .blob(row.org), .blob(row.batchKey),
      .int(row.state.code.rawValue), .int(row.state.waitReason?.code ?? 0),
      .int(row.state.pause.since.ms), .int(row.state.pause.until.ms), .int(row.attempts),
      .int(row.history.number), .int(row.isEdited ? 1 : 0), .int(row.createdMS), .int(row.size),
      Value(row.list), Value(row.listedMS), .blob(row.body), Value(row.rejection))
  }

  /// The last number that an item was given; 0: none was.
  public func lastNumber() throws(Failure) -> Int64 {
    try database.first("SELECT seq FROM sqlite_sequence WHERE name = 'queue'") {
      (row) throws(Failure) in row.count(0)
    } ?? 0
  }

  /// No later item gets this number, or a lower one.
  public func highestNumber() throws(Failure) -> Int64 {
    let highest = try database.first("SELECT ifnull(max(seq), 0) FROM queue") {
      (row) throws(Failure) in row.count(0)
    }
    return max(highest ?? 0, try lastNumber())
  }

  public func contains(_ item: [UInt8]) throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue WHERE item = ?", .blob(item))
  }

  /// Whether the list with this tag shows the item.
  public func contains(_ item: [UInt8], in list: [UInt8]) throws(Failure) -> Bool {
    try database.exists(
      "SELECT 1 FROM queue WHERE item = ?1 AND list = ?2", .blob(item), .blob(list))
  }

  public func find(_ item: [UInt8]) throws(Failure) -> QueueRow? {
    try database.first("SELECT * FROM queue WHERE item = ?", .blob(item)) {
      (row) throws(Failure) in QueueRow(row)
    }
  }

  /// The tag of a parked item whose tag begins with `prefix`. An item whose seal does not open is
  /// shown under the first 16 bytes of its tag, since its own id cannot be read.
  public func findParked(_ prefix: [UInt8], of owner: [UInt8]) throws(Failure) -> [UInt8]? {
    try database.first(
      """
      SELECT item FROM queue INDEXED BY sqlite_autoindex_queue_1
      WHERE item >= ?2 AND item <= ?3 AND owner = ?1 AND state = 3
      """, .blob(owner), .blob(prefix),
      .blob(prefix + [UInt8](repeating: 0xFF, count: 16))
    ) { (row) throws(Failure) in row.blob(0) }
  }

  /// Remove an item. It depends on nothing any more; others may still depend on it.
  public func remove(_ item: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM queue WHERE item = ?", .blob(item))
  }

  /// Remove items that are proved to be stored, and release the items that waited only for them.
  public func removeStored(_ items: [[UInt8]]) throws(Failure) {
    // Most queues have no dependencies; then the statement per item is not needed.
    let hasDependencies = try !dependencies.isEmpty()
    for item in items {
      try remove(item)
      if hasDependencies { try releaseDependents(of: item) }
    }
  }

  public func removeAll(of owner: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM queue_block WHERE owner = ?", .blob(owner))
    try database.run("DELETE FROM queue WHERE owner = ?", .blob(owner))
    try database.run("DELETE FROM queue_count WHERE owner = ?", .blob(owner))
    try SyncRunTable(database).end(of: owner)
  }

  /// The same in transactions that fit into the log of a full disk.
  public func removeAllInSlices(of owner: [UInt8]) throws(Failure) {
    var isLast = false
    while !isLast {
      try database.transaction { () throws(Failure) in
        let rows = try page(of: owner, state: nil, after: 0, limit: 32)
        var size: Int64 = 0
        for row in rows where size < 131_072 {
          try remove(row.item)
          size += row.size
        }
        isLast = rows.isEmpty
      }
    }
  }

  /// Store a row as it is in memory, but for its place in the order of registration. A lease lasts while the
  /// item is being sent.
  public func write(_ row: QueueRow) throws(Failure) {
    let pause = row.state.waitReason?.pause ?? row.pause
    try database.run(
      """
      UPDATE queue SET batch_key = ?2, state = ?3, wait_reason = ?4, not_before_ms = ?5, attempts = ?6,
        history = ?7, edited = ?8, size = ?9, list = ?10, listed_ms = ?11, body = ?12, rejection = ?13,
        retry_group = ?14, since_ms = ?15, lease = CASE ?3 WHEN 1 THEN lease END,
        lease_ms = CASE ?3 WHEN 1 THEN lease_ms ELSE 0 END
      WHERE item = ?1
      """, .blob(row.item), .blob(row.batchKey), .int(row.state.code.rawValue),
      .int(row.state.waitReason?.code ?? 0),
      .int(pause.until.ms), .int(row.attempts),
      .int(row.history.number), .int(row.isEdited ? 1 : 0), .int(row.size),
      Value(row.list), Value(row.listedMS), .blob(row.body), Value(row.rejection),
      .int(row.retryGroup.number), .int(pause.since.ms))
  }

  /// Change an item as its request's result says, and end its lease. `charged`: with an attempt, because
  /// the server may have stored it. `history` and `retryGroup`: nil as before. `rejection`: why the
  /// server refused it, sealed.
  public func transition(
    _ sequence: Int64, _ state: ItemState, charged isCharged: Bool = false,
    history: FailureHistory? = nil, retryGroup: RetryGroup? = nil, rejection: [UInt8]? = nil
  ) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = ?2, wait_reason = ?3, not_before_ms = ?4, attempts = attempts + ?5,
        history = ifnull(?6, history), rejection = ?7, lease = NULL, lease_ms = 0,
        retry_group = CASE ?2 WHEN 3 THEN 0 ELSE ifnull(?8, retry_group) END, since_ms = ?9
      WHERE seq = ?1
      """, .int(sequence), .int(state.code.rawValue), .int(state.waitReason?.code ?? 0),
      .int(state.pause.until.ms), .int(isCharged ? 1 : 0), Value(history?.number),
      Value(rejection), Value(retryGroup?.number), .int(state.pause.since.ms))
  }

  public func assign(_ sequence: Int64, retryGroup: RetryGroup) throws(Failure) {
    try database.run(
      "UPDATE queue SET retry_group = ?2 WHERE seq = ?1", .int(sequence),
      .int(retryGroup.number))
  }

  /// Of this group one item is known to be at fault. Nothing is known any more of those that are not sent.
  public func spare(_ group: RetryGroup, to other: RetryGroup, of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET retry_group = ?3, history = max(history, 0)
      WHERE owner = ?1 AND state = 0 AND retry_group = ?2
      """,
      .blob(owner), .int(group.number), .int(other.number))
  }

  /// Try again at the user's request: one item, or (nil) all that are parked. How many. One that
  /// follows another waits for it. An item that was refused on the way keeps the end of its pause:
  /// until then a refusal is not counted again.
  public func retry(_ item: [UInt8]?, of owner: [UInt8]) throws(Failure) -> Int {
    guard let item else {
      return try database.run(
        """
        UPDATE queue SET retry_group = 0, history = max(history, 0), rejection = NULL,
          not_before_ms = 0,
          state = iif(item IN (SELECT item FROM dependency), 2, 0),
          wait_reason = iif(item IN (SELECT item FROM dependency), 1, 0)
        WHERE owner = ?1 AND state = 3
        """, .blob(owner))
    }
    return try database.run(
      """
      UPDATE queue SET retry_group = 0, history = max(history, 0), rejection = NULL,
        not_before_ms = iif(state = 2 AND wait_reason = 6, not_before_ms, 0),
        state = iif(item IN (SELECT item FROM dependency), 2, 0),
        wait_reason = iif(item IN (SELECT item FROM dependency), 1, 0)
      WHERE owner = ?1 AND item = ?2 AND (state = 3 OR (state = 2 AND wait_reason <> 1))
      """, .blob(owner), .blob(item))
  }
}
