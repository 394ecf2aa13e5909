public import Base

/// What makes items wait, and what ends that.
extension QueueTable {
  /// Change many rows: on a full disk a few in each transaction, so that each fits into the log. `change`
  /// gets the most rows that it may change, and returns how many it has changed.
  public func inSlices(_ change: (Int) throws(Failure) -> Int) throws(Failure) {
    let most = database.isTight ? 32 : Int.max
    while try change(most) == most {}
  }

  // MARK: Time

  /// Pending items with the batch key of this one pause: the server takes none of them.
  public func pause(
    like sequence: Int64, of owner: [UInt8], _ reason: WaitReason
  ) throws(Failure) {
    let pause = reason.pause ?? .none
    try database.run(
      """
      UPDATE queue SET state = 2, wait_reason = ?3, since_ms = ?4, not_before_ms = ?5
      WHERE owner = ?1 AND state = 0
        AND batch_key = (SELECT batch_key FROM queue WHERE seq = ?2)
      """, .blob(owner), .int(sequence), .int(reason.code),
      .int(pause.since.ms), .int(pause.until.ms))
  }

  /// Whether items pause together. Those that were found to be at fault do not: each waits for itself.
  public func hasPaused(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists(
      """
      SELECT 1 FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason IN (2, 5) AND history <= 0
      """, .blob(owner))
  }

  /// Whether other items with this batch key are to be sent, of which none fails alone.
  public func hasOthers(
    like batchKey: [UInt8], of owner: [UInt8], than sequence: Int64
  ) throws(Failure) -> Bool {
    try database.exists(
      """
      SELECT 1 FROM queue WHERE owner = ?1 AND state IN (0, 1, 2) AND batch_key = ?2
        AND seq <> ?3 AND history <= 0
      """, .blob(owner), .blob(batchKey), .int(sequence))
  }

  /// The items that wait for a reason, by batch key: one of each, and how many there are.
  public func waiting(
    of owner: [UInt8], for reason: WaitReason
  ) throws(Failure) -> [(batchKey: [UInt8], item: [UInt8], count: Int64)] {
    try database.all(
      """
      SELECT batch_key, item, count(*) FROM queue
      WHERE owner = ?1 AND state = 2 AND wait_reason = ?2 GROUP BY batch_key
      """, .blob(owner), .int(reason.code)
    ) { (row) throws(Failure) in (row.blob(0), row.blob(1), row.int(2)) }
  }

  /// How long until the first item is due that waits for a time, 0 or less: now; nil: none does. An item whose
  /// pause has not begun is due (`Pause.lasts`): of those with one reason, the last one tells.
  public func leftMS(of owner: [UInt8], now: SteadyTime) throws(Failure) -> Int64? {
    // Each of these is one step in the index, or a few: not many items fail alone.
    var left: Int64?
    try database.each(
      """
      SELECT (SELECT min(not_before_ms) FROM queue WHERE owner = ?1 AND state = 2
          AND wait_reason = column1 AND (column2 OR history <= 0)),
        (SELECT max(since_ms, not_before_ms - ?2) FROM queue WHERE owner = ?1 AND state = 2
          AND wait_reason = column1 AND (column2 OR history <= 0) ORDER BY not_before_ms DESC LIMIT 1)
      FROM (VALUES (2, 0), (2, 1), (5, 1), (6, 1))
      """, [.blob(owner), .int(Pause.longestMS)]
    ) { (row) throws(Failure) in
      if let earliest = row.int(ifPresent: 0), let since = row.int(ifPresent: 1) {
        left = min(left ?? .max, since > now.ms ? 0 : earliest - now.ms)
      }
      return true
    }
    return left
  }

  /// Items that have waited until their time become pending. Their pauses have ended, also those that have not begun:
  /// else the next one would end at the same time.
  public func promote(of owner: [UInt8], now: SteadyTime) throws(Failure) {
    // Without due items there is no write, so no wait for another process's write lock.
    guard let left = try leftMS(of: owner, now: now), left <= 0 else { return }
    try inSlices { (most) throws(Failure) in
      try database.run(
        """
        UPDATE queue SET state = 0, wait_reason = 0, not_before_ms = 0
        WHERE seq IN (SELECT seq FROM queue
          WHERE owner = ?1 AND state = 2 AND wait_reason IN (2, 5, 6)
            AND (not_before_ms <= ?2 OR max(since_ms, not_before_ms - ?4) > ?2)
          LIMIT ?3)
        """, .blob(owner), .int(now.ms), .int(most), .int(Pause.longestMS))
    }
  }

  /// Items in a pause become pending, except where a server asked for it: all, or those with this batch key that
  /// do not fail alone.
  public func endOwnPauses(of owner: [UInt8], batchKey: [UInt8]? = nil) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 0, wait_reason = 0
      WHERE owner = ?1 AND state = 2 AND wait_reason = 2
        AND (?2 IS NULL OR batch_key = ?2 AND history <= 0)
      """, .blob(owner), Value(batchKey))
  }

  /// Items that wait for themselves become pending: those that the service fails for, and those that were
  /// refused on the way no more than `most` times, so that nothing shows that they are at fault.
  public func endPausesAlone(of owner: [UInt8], most: Int64) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 0, wait_reason = 0
      WHERE owner = ?1 AND state = 2 AND wait_reason IN (2, 6) AND history > 0
        AND (wait_reason = 2 OR history % 1024 <= ?2)
      """, .blob(owner), .int(most))
  }

  // MARK: Kind

  /// The kind of these items is known; a batch key has one. They become pending.
  public func releaseKind(batchKey: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 0, wait_reason = 0
      WHERE owner = ?1 AND state = 2 AND wait_reason = 4 AND batch_key = ?2
      """, .blob(owner), .blob(batchKey))
  }

  // MARK: Organisation

  /// The organisations of the owner's items, or only of those that wait for theirs. A user may be in
  /// thousands of organisations, and has items in few.
  public func organisations(of owner: [UInt8], waiting: Bool) throws(Failure) -> [[UInt8]] {
    let all: StaticCString = "SELECT DISTINCT org FROM queue WHERE owner = ?1"
    let those: StaticCString =
      "SELECT DISTINCT org FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason = 3"
    return try database.all(waiting ? those : all, .blob(owner)) { (row) throws(Failure) in
      row.blob(0)
    }
  }

  /// The user is not (or no longer) in the organisation: its items that are pending or wait for a
  /// time wait for the organisation.
  public func withhold(org: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 2, wait_reason = 3
      WHERE owner = ?1 AND org = ?2 AND (state = 0 OR state = 2 AND wait_reason IN (2, 5, 6))
      """, .blob(owner), .blob(org))
  }

  /// The user is in the organisation again, or (nil) the app has no organisations any more: what waits
  /// for it becomes pending, or waits for its parents.
  public func release(org: [UInt8]?, of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = iif(item IN (SELECT item FROM dependency), 2, 0),
        wait_reason = iif(item IN (SELECT item FROM dependency), 1, 0)
      WHERE owner = ?1 AND (?2 IS NULL OR org = ?2) AND state = 2 AND wait_reason = 3
      """, .blob(owner), Value(org))
  }

  /// Forget that items were denied which still wait for their organisation: that was without a
  /// membership, and says nothing about the time after the user's return.
  public func forgetDenials(of owner: [UInt8]) throws(Failure) {
    try database.run(
      "UPDATE queue SET history = 0 WHERE owner = ?1 AND state = 2 AND wait_reason = 3 AND history < 0",
      .blob(owner))
  }

  // MARK: Dependencies

  /// Items that wait for others of which none is in the queue: damage has taken what linked them.
  public func unlinked(of owner: [UInt8], most: Int) throws(Failure) -> [[UInt8]] {
    try database.all(
      """
      SELECT item FROM queue AS child WHERE owner = ?1 AND state = 2 AND wait_reason = 1
        AND NOT EXISTS (SELECT 1 FROM dependency
          JOIN queue AS above ON above.item = dependency.parent WHERE dependency.item = child.item)
      LIMIT ?2
      """, .blob(owner), .int(most)
    ) { (row) throws(Failure) in row.blob(0) }
  }

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
