public import Base

/// What makes items wait, and what ends that.
extension QueueTable {
  // MARK: Time

  /// Pending items with the batch key of this one wait until then: the server takes none of them.
  public func suspend(like sequence: Int64, of owner: [UInt8], until ms: Int64) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 2, wait_reason = 2, not_before_ms = ?3
      WHERE owner = ?1 AND state = 0
        AND batch_key = (SELECT batch_key FROM queue WHERE seq = ?2)
      """, .blob(owner), .int(sequence), .int(ms))
  }

  /// When the first suspended item is due; nil: none is suspended.
  public func nextMS(of owner: [UInt8]) throws(Failure) -> Int64? {
    try database.first(
      """
      SELECT min(not_before_ms) FROM queue
      WHERE owner = ?1 AND state = 2 AND wait_reason = 2
      """, .blob(owner)
    ) { (row) throws(Failure) in row.int(ifPresent: 0) } ?? nil
  }

  /// Suspended items that are due become pending.
  public func promote(of owner: [UInt8], now: Int64) throws(Failure) {
    // Without due items there is no write, so no wait for another process's write lock.
    guard let due = try nextMS(of: owner), due <= now else { return }
    try database.run(
      """
      UPDATE queue SET state = 0, wait_reason = 0
      WHERE owner = ?1 AND state = 2 AND wait_reason = 2 AND not_before_ms <= ?2
      """, .blob(owner), .int(now))
  }

  // MARK: Kind

  // A batch key has one kind, so one of its items tells the kind of all.

  /// The batch keys whose items wait because a process does not know their kind, each with one item.
  public func heldKinds(
    of owner: [UInt8]
  ) throws(Failure) -> [(batchKey: [UInt8], item: [UInt8])] {
    try database.all(
      """
      SELECT batch_key, item FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason = 4
      GROUP BY batch_key
      """, .blob(owner)
    ) { (row) throws(Failure) in (row.blob(0), row.blob(1)) }
  }

  /// The kind of these items is known: they become pending.
  public func releaseKind(batchKey: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 0, wait_reason = 0
      WHERE owner = ?1 AND state = 2 AND wait_reason = 4 AND batch_key = ?2
      """, .blob(owner), .blob(batchKey))
  }

  // MARK: Organisation

  /// The user is not (or no longer) in the organisation: its pending and suspended items wait.
  public func withhold(org: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 2, wait_reason = 3
      WHERE owner = ?1 AND org = ?2 AND (state = 0 OR (state = 2 AND wait_reason = 2))
      """, .blob(owner), .blob(org))
  }

  /// The user is in the organisation again: its items become pending, or wait for their parents.
  public func release(org: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET
        state = CASE WHEN item IN (SELECT item FROM dependency) THEN 2 ELSE 0 END,
        wait_reason = CASE WHEN item IN (SELECT item FROM dependency) THEN 1 ELSE 0 END
      WHERE owner = ?1 AND org = ?2 AND state = 2 AND wait_reason = 3
      """, .blob(owner), .blob(org))
  }

  /// Clear the denials of items that wait for their organisation: they were earned without a
  /// membership, and say nothing about the time after the user's return.
  public func forgetDenials(of owner: [UInt8]) throws(Failure) {
    try database.run(
      "UPDATE queue SET denials = 0 WHERE owner = ?1 AND state = 2 AND wait_reason = 3",
      .blob(owner))
  }

  // MARK: Dependencies

  /// Remove `parent` from all dependencies. Items that waited only for it become pending; how many.
  @discardableResult
  public func releaseDependents(of parent: [UInt8]) throws(Failure) -> Int {
    let children = try dependencies.children(of: parent)
    try dependencies.removeChildren(of: parent)
    var released = 0
    for child in children {
      released += try database.run(
        """
        UPDATE queue SET state = 0, wait_reason = 0
        WHERE item = ?1 AND state = 2 AND wait_reason = 1
          AND NOT EXISTS (SELECT 1 FROM dependency WHERE item = ?1)
        """, .blob(child))
    }
    return released
  }
}
