public import Base

/// Batches are taken from the queue in three steps, in one transaction:
///
/// 1. The head is the oldest pending item of the lowest retry group.
/// 2. The batch is the head and the items after it with the same group and key, oldest first, until
///    the limit of items or of bytes. The head itself may be larger than the limit of bytes. An item
///    that fails alone (`history`) is a batch of its own.
/// 3. All of them get the state `sending` and a lease. The holder ends it by `transition`; when the
///    holder is dead or late, `reclaim` does.
///
/// `queue_ready` (owner, state, retry group, batch key, sequence) serves steps 1 and 2. For step 1 the
/// index is searched once for each batch key, for its oldest item: there are few keys, and an index by
/// age would cost every insert.
extension QueueTable {
  /// Lease the next batch; empty when nothing is pending. `maximumItems` limits those of a batch key. Of
  /// a group that is searched, a half is sent: if it is stored, then the item at fault is in the other half,
  /// which need not be sent whole to know that.
  public func take(
    of owner: [UInt8], holder: [UInt8], until leaseEnd: SteadyTime, maximumSize: Int64,
    maximumItems: ([UInt8]) -> Int
  ) throws(Failure) -> [QueueRow] {
    try database.transaction { () throws(Failure) in
      guard let head = try oldest(of: owner) else { return [] }
      var maximumItems = maximumItems(head.batchKey)
      if head.retryGroup.isSearched {
        maximumItems = min(maximumItems, max(1, try count(of: owner, head.retryGroup) / 2))
      }
      var rows: [QueueRow] = []
      var size: Int64 = 0
      try database.each(
        """
        SELECT * FROM queue
        WHERE owner = ?1 AND state = 0 AND retry_group = ?3 AND batch_key = ?2
        ORDER BY seq LIMIT ?4
        """,
        [
          .blob(owner), .blob(head.batchKey), .int(head.retryGroup.number),
          .int(maximumItems),
        ]
      ) { (row) throws(Failure) in
        guard QueueRow.hasTag(row) else { throw database.damage("an item's tag is damaged") }
        let item = QueueRow(row)
        if let head = rows.first {
          if head.history.isAlone { return false }
          if item.history.isAlone { return true }
        }
        size += item.size
        if !rows.isEmpty, size > maximumSize { return false }
        rows.append(item)
        return true
      }
      guard let first = rows.first, let last = rows.last else {
        // The head is there and no item has its key: it is no blob, which only damage makes.
        throw database.damage("an item's batch key is damaged")
      }
      try database.run(
        """
        UPDATE queue SET state = 1, wait_reason = 0, lease = ?5, lease_ms = ?6, edited = 0
        WHERE owner = ?1 AND state = 0 AND retry_group = ?3 AND batch_key = ?2 AND seq <= ?4
          AND (history <= 0 OR seq = ?7)
        """, .blob(owner), .blob(head.batchKey), .int(head.retryGroup.number), .int(last.sequence),
        .blob(holder), .int(leaseEnd.ms), .int(first.sequence))
      return rows
    }
  }

  /// How many items of a retry group are pending.
  private func count(of owner: [UInt8], _ group: RetryGroup) throws(Failure) -> Int {
    try database.first(
      "SELECT count(*) FROM queue WHERE owner = ?1 AND state = 0 AND retry_group = ?2",
      .blob(owner), .int(group.number)
    ) { (row) throws(Failure) in Int(row.count(0)) } ?? 0
  }

  /// The batch key of the oldest pending item in the lowest retry group.
  private func oldest(
    of owner: [UInt8]
  ) throws(Failure) -> (batchKey: [UInt8], retryGroup: RetryGroup)? {
    let group = try database.first(
      """
      SELECT retry_group FROM queue WHERE owner = ?1 AND state = 0 ORDER BY retry_group LIMIT 1
      """, .blob(owner)
    ) { (row) throws(Failure) in row.count(0) }
    guard let group else { return nil }
    return try database.first(
      """
      WITH RECURSIVE keys(key) AS (
        SELECT min(batch_key) FROM queue WHERE owner = ?1 AND state = 0 AND retry_group = ?2
        UNION ALL
        SELECT (SELECT min(batch_key) FROM queue
            WHERE owner = ?1 AND state = 0 AND retry_group = ?2 AND batch_key > key)
          FROM keys WHERE key IS NOT NULL)
      SELECT key FROM keys WHERE key IS NOT NULL
      ORDER BY (SELECT min(seq) FROM queue
        WHERE owner = ?1 AND state = 0 AND retry_group = ?2 AND batch_key = key)
      LIMIT 1
      """, .blob(owner), .int(group)
    ) { (row) throws(Failure) in (batchKey: row.blob(0), retryGroup: RetryGroup(group)) }
  }

  /// The sequence numbers of the items that the holder has leased, in their order.
  public func leased(by holder: [UInt8]) throws(Failure) -> [Int64] {
    try database.all(
      "SELECT seq FROM queue WHERE state = 1 AND lease = ? ORDER BY seq", .blob(holder)
    ) { (row) throws(Failure) in row.count(0) }
  }

  /// Those of them that the user has edited or cancelled since they were leased.
  public func edited(by holder: [UInt8]) throws(Failure) -> [Int64] {
    try database.all(
      "SELECT seq FROM queue WHERE state = 1 AND lease = ? AND edited <> 0 ORDER BY seq",
      .blob(holder)
    ) { (row) throws(Failure) in row.count(0) }
  }

  /// Whether any item is leased: to group the leases takes a statement twice as long.
  public func hasLeases() throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue INDEXED BY queue_leased WHERE state = 1")
  }

  /// The holders of leased items, each with the end of its latest lease.
  public func leases() throws(Failure) -> [(holder: [UInt8], until: SteadyTime)] {
    try database.all(
      """
      SELECT lease, max(lease_ms) FROM queue INDEXED BY queue_leased WHERE state = 1
      GROUP BY lease
      """
    ) { (row) throws(Failure) in
      // No holder is found by a text.
      guard row.isNull(0) || row.isBlob(0) else { throw database.damage("a lease is damaged") }
      return (row.blob(0), SteadyTime(ms: row.int(1)))
    }
  }

  /// Whether there are items whose state or reason to wait is none of ours: a step in the indexes by
  /// state and by reason for each gap between the numbers in use. Text is more than any number. Only
  /// others store such a state, so the answer holds until another connection has written.
  public func hasUnknownStates(of owner: [UInt8]) throws(Failure) -> Bool {
    let cache = database.currentReadCache
    if cache?.ownerOfKnownStates == owner { return false }
    let found = try database.exists(
      """
      SELECT 1 FROM (VALUES (-1), (0), (1), (2)) AS used CROSS JOIN queue
        WHERE owner = ?1 AND state > column1 AND state < column1 + 1
      UNION ALL SELECT 1 FROM queue WHERE owner = ?1 AND state > 3
      UNION ALL SELECT 1 FROM queue WHERE owner = ?1 AND state <= -1
      UNION ALL SELECT 1 FROM (VALUES (0), (1), (2), (3), (4), (5)) AS used CROSS JOIN queue
        WHERE owner = ?1 AND state = 2 AND wait_reason > column1 AND wait_reason < column1 + 1
      UNION ALL SELECT 1 FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason > 6
      UNION ALL SELECT 1 FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason <= 0
      """, .blob(owner))
    if !found { cache?.ownerOfKnownStates = owner }
    return found
  }

  /// A newer version, a tool or damage has given items a state that this version does not know, or one
  /// that is no whole number: they become pending. The server may have them, so each is charged with an attempt.
  public func settleStates(of owner: [UInt8]) throws(Failure) {
    try inSlices { (most) throws(Failure) in
      try database.run(
        """
        UPDATE queue SET state = 0, wait_reason = 0, lease = NULL, lease_ms = 0,
          attempts = attempts + 1
        WHERE seq IN (SELECT seq FROM queue WHERE owner = ?1 AND NOT ifnull(
          state IN (0, 1, 2, 3) AND (state <> 2 OR wait_reason IN (1, 2, 3, 4, 5, 6)), 0) LIMIT ?2)
        """, .blob(owner), .int(most))
    }
    try countAnew()
    Log.line(.warning, "items had an unknown state; they are sent")
  }

  /// End a dead or late holder's leases. Its requests may have been sent, so each item is charged
  /// with an attempt. A damaged file may name no holder: `leases` gives an empty one then.
  public func reclaim(from holder: [UInt8]) throws(Failure) {
    try inSlices { (most) throws(Failure) in
      try database.run(
        """
        UPDATE queue SET state = 0, wait_reason = 0, lease = NULL, lease_ms = 0,
          attempts = attempts + 1
        WHERE seq IN (SELECT seq FROM queue INDEXED BY queue_leased
          WHERE state = 1 AND lease IS ?1 ORDER BY lease_ms, seq LIMIT ?2)
        """, Value(holder.isEmpty ? nil : holder), .int(most))
    }
  }
}
