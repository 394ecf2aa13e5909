public import Base

/// How many items are in each state.
public struct QueueCounts: Sendable {
  public var pending: Int64 = 0
  public var sending: Int64 = 0
  public var waiting: Int64 = 0
  public var parked: Int64 = 0
  public var total: Int64 { pending &+ sending &+ waiting &+ parked }

  public init() {}
}

/// The counts of the queue are kept, not made by a scan: the table `queue_count` has a row for each
/// place that items of an owner were in: a state, and if they wait, a reason. `insert` counts a new
/// item, and triggers of the connection follow each change of it (`Schema.main`), in the same
/// transaction.
///
/// Nothing is decided by a count that could harm an item: what is sent, released or erased follows
/// from the rows. Kept counts can be wrong after somebody else has written the file, or damage. So a
/// reader compares them with what one step in an index tells, whether a place has any items. Where
/// that fails, the items are counted anew, and so they are when a file was checked whole.
extension QueueTable {
  // MARK: Counting anew

  /// An unknown state counts as pending, and an unknown reason as that of an unknown kind: a process
  /// settles both (`settleStates`).
  @inline(never)
  func countAnew() throws(Failure) {
    try database.transaction { () throws(Failure) in
      try database.run("DELETE FROM queue_count")
      try database.run("DELETE FROM queue_block")
      try database.run(
        """
        INSERT INTO queue_count(owner, state, wait_reason, items)
        SELECT owner, iif(state IN (1, 2, 3), state, 0) AS place,
          iif(state <> 2, 0, iif(wait_reason IN (1, 2, 3, 5, 6), wait_reason, 4)) AS reason, count(*)
        FROM queue GROUP BY owner, place, reason
        """)
    }
  }

  /// The kept counts cannot be right.
  private func recount() throws(Failure) {
    try countAnew()
    Log.line(.warning, "the kept counts of queued items were wrong; the items were counted anew")
  }

  /// The same, unless this is a part of a transaction: a reader must not fail for it.
  @inline(never)
  private func recountIfFree() throws(Failure) {
    guard !database.isInTransaction else { return }
    do throws(Failure) { try recount() } catch  where error.code != .memoryExhausted {}
  }

  /// Compare the sum of the counts with the number of items, for a file that was checked whole.
  public func checkCounts() throws(Failure) {
    let isWrong = try database.first(
      "SELECT (SELECT count(*) FROM queue) <> total(items) FROM queue_count"
    ) { (row) throws(Failure) in row.int(0) != 0 }
    if isWrong ?? true { try recount() }
  }

  // MARK: Reading

  private typealias Kept = (state: Int64, reason: Int64, items: Int64)

  /// How many items an owner has in each place where there are any.
  @inline(never)
  private func kept(of owner: [UInt8]) throws(Failure) -> [Kept] {
    var found: [Kept] = []
    var isPossible = true
    try database.each(
      """
      WITH place(state, reason) AS
        (VALUES (0, 0), (1, 0), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6), (3, 0))
      SELECT state, reason, (SELECT items FROM queue_count WHERE owner = ?1
          AND queue_count.state = place.state AND wait_reason = reason),
        CASE state WHEN 2 THEN EXISTS (SELECT 1 FROM queue INDEXED BY queue_held
            WHERE owner = ?1 AND queue.state = 2 AND wait_reason = reason)
          ELSE EXISTS (SELECT 1 FROM queue INDEXED BY queue_ready
            WHERE owner = ?1 AND queue.state = place.state) END
      FROM place
      """, [.blob(owner)]
    ) { (row) throws(Failure) in
      let items = row.isNull(2) ? 0 : row.integer(2) ?? -1
      isPossible = Row.counts.contains(items) && (items > 0) == (row.int(3) == 1)
      if isPossible, items > 0 { found.append((row.int(0), row.int(1), items)) }
      return isPossible
    }
    if isPossible { return found }
    found = try scan(of: owner)
    try recountIfFree()
    return found
  }

  /// The same by the rows.
  @inline(never)
  private func scan(of owner: [UInt8]) throws(Failure) -> [Kept] {
    try database.all(
      """
      SELECT iif(state IN (1, 2, 3), state, 0) AS place,
        iif(state <> 2, 0, iif(wait_reason IN (1, 2, 3, 5, 6), wait_reason, 4)) AS reason, count(*)
      FROM queue WHERE owner = ? GROUP BY place, reason
      """, .blob(owner)
    ) { (row) throws(Failure) in (row.int(0), row.int(1), row.count(2)) }
  }

  /// How many items an owner has, by their rows: before they are all deleted.
  public func countRows(of owner: [UInt8]) throws(Failure) -> Int64 {
    try database.first("SELECT count(*) FROM queue WHERE owner = ?", .blob(owner)) {
      (row) throws(Failure) in row.count(0)
    } ?? 0
  }

  public func counts(of owner: [UInt8]) throws(Failure) -> QueueCounts {
    var result = QueueCounts()
    for place in try kept(of: owner) {
      switch ItemState.Code(rawValue: place.state) {
      case .pending, nil: result.pending += place.items
      case .sending: result.sending += place.items
      case .waiting: result.waiting += place.items
      case .parked: result.parked += place.items
      }
    }
    return result
  }

  /// How many items wait for each reason; of those that wait for a time, the earliest.
  public func waitCounts(
    of owner: [UInt8]
  ) throws(Failure) -> [(reason: WaitReason, count: Int64)] {
    var result: [(reason: WaitReason, count: Int64)] = []
    for place in try kept(of: owner) where place.reason != 0 {
      let earliest = try database.first(
        """
        SELECT min(not_before_ms) FROM queue INDEXED BY queue_held
        WHERE owner = ?1 AND state = 2 AND wait_reason = ?2
        """, .blob(owner), .int(place.reason)
      ) { (row) throws(Failure) in row.int(ifPresent: 0) ?? 0 }
      let pause = Pause(since: 0, until: SteadyTime(ms: earliest ?? 0))
      if let reason = WaitReason(code: place.reason, pause) {
        result.append((reason, place.items))
      }
    }
    return result
  }

  /// Items of other owners: they wait until their owner signs in.
  public func countOfOthers(than owner: [UInt8]?) throws(Failure) -> Int64 {
    var (sum, isPossible): (Int64, Bool) = (0, true)
    try database.each(
      "SELECT items FROM queue_count WHERE owner IS NOT ?", [Value(owner)]
    ) { (row) throws(Failure) in
      let items = row.integer(0) ?? -1
      isPossible = isPossible && Row.counts.contains(items)
      sum &+= items
      return isPossible
    }
    if isPossible, Row.counts.contains(sum), try (sum > 0) == hasOthers(than: owner) { return sum }
    try recountIfFree()
    return try database.first("SELECT count(*) FROM queue WHERE owner IS NOT ?", Value(owner)) {
      (row) throws(Failure) in row.count(0)
    } ?? 0
  }

  /// Whether there are items of other owners.
  func hasOthers(than owner: [UInt8]?) throws(Failure) -> Bool {
    try database.exists(
      """
      SELECT 1 FROM queue INDEXED BY queue_ready WHERE owner > ifnull(?1, '')
      UNION ALL SELECT 1 FROM queue INDEXED BY queue_ready WHERE owner < ?1
      """, Value(owner))
  }
}
