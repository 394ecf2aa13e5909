public import Base

/// Where an item stands. Stored items are erased, so there is no state for them.
public enum ItemState: Int64, CaseIterable, Sendable {
  /// To be sent now.
  case pending = 0
  /// In a request; the lease says whose.
  case sending = 1
  /// To be sent later; the hold says why.
  case waiting = 2
  /// Refused for good: the user decides.
  case parked = 3

  public var word: String {
    switch self {
    case .pending: return "pending"
    case .sending: return "sending"
    case .waiting: return "waiting"
    case .parked: return "parked"
    }
  }

  public init?(word: String) {
    guard let found = ItemState.allCases.first(where: { $0.word == word }) else { return nil }
    self = found
  }
}

/// Why an item waits.
public enum Hold: Int64, CaseIterable, Sendable {
  case none = 0
  /// Another item must be stored first.
  case dependency = 1
  /// Until `not_before_ms`.
  case time = 2
  /// The server did not let this organisation's items in.
  case organisation = 3
  /// The configuration does not know the item's kind (any more).
  case kind = 4
}

public final class QueueRow {
  public var sequence: Int64 = 0
  public var item: [UInt8] = []
  public var owner: [UInt8] = []
  public var org: [UInt8] = []
  /// Items of one shape may travel together.
  public var shape: [UInt8] = []
  public var state: ItemState = .pending
  public var hold: Hold = .none
  /// Items of one cohort travel apart from others and after those of earlier cohorts: a refused
  /// batch, halved. 0: none. So whatever fails again and again is tried last, and starves nobody.
  public var cohort: Int64 = 0
  public var attempts: Int64 = 0
  public var denials: Int64 = 0
  public var notBeforeMS: Int64 = 0
  public var createdMS: Int64 = 0
  public var size: Int64 = 0
  public var body: [UInt8] = []
  public var verdict: [UInt8]?

  public init() {}
}

/// How many items are in each state.
public struct QueueCounts: Sendable {
  public var pending: Int64 = 0
  public var sending: Int64 = 0
  public var waiting: Int64 = 0
  public var parked: Int64 = 0
  public var total: Int64 { pending + sending + waiting + parked }

  public init() {}
}

public struct QueueTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  private static func read(_ row: Row) -> QueueRow {
    let result = QueueRow()
    result.sequence = row.int(0)
    result.item = row.blob(1)
    result.owner = row.blob(2)
    result.org = row.blob(3)
    result.shape = row.blob(4)
    result.state = ItemState(rawValue: row.int(5)) ?? .pending
    result.hold = Hold(rawValue: row.int(6)) ?? .none
    result.cohort = row.int(7)
    result.attempts = row.int(8)
    result.denials = row.int(9)
    result.notBeforeMS = row.int(10)
    result.createdMS = row.int(11)
    result.size = row.int(12)
    result.body = row.blob(13)
    result.verdict = row.blob(ifPresent: 14)
    return result
  }

  // MARK: One item

  public func insert(_ row: QueueRow) throws(Failure) -> Int64 {
    try database.run(
      """
      INSERT INTO queue(item, owner, org, shape, state, hold, created_ms, size, body)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .blob(row.item), .blob(row.owner), .blob(row.org), .blob(row.shape),
      .int(row.state.rawValue), .int(row.hold.rawValue), .int(row.createdMS), .int(row.size),
      .blob(row.body))
    return database.lastInsertedRow
  }

  public func find(_ item: [UInt8]) throws(Failure) -> QueueRow? {
    try database.first(
      """
      SELECT seq, item, owner, org, shape, state, hold, cohort, attempts, denials, not_before_ms,
        created_ms, size, body, verdict FROM queue WHERE item = ?
      """, .blob(item)
    ) { (row) throws(Failure) in QueueTable.read(row) }
  }

  public func remove(_ item: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM queue WHERE item = ?", .blob(item))
    try database.run("DELETE FROM dependency WHERE item = ?", .blob(item))
  }

  /// The same for items that are stored: what waited only for them may go.
  public func removeStored(_ items: [[UInt8]]) throws(Failure) {
    // Mostly nothing waits for anything.
    let isLinked =
      try database.first("SELECT 1 FROM dependency LIMIT 1") { (_) throws(Failure) in true }
      ?? false
    for item in items {
      try database.run("DELETE FROM queue WHERE item = ?", .blob(item))
      if isLinked {
        try database.run("DELETE FROM dependency WHERE item = ?", .blob(item))
        try releaseDependents(of: item)
      }
    }
  }

  public func removeAll(of owner: [UInt8]) throws(Failure) {
    try database.run(
      "DELETE FROM dependency WHERE item IN (SELECT item FROM queue WHERE owner = ?)", .blob(owner))
    try database.run("DELETE FROM queue WHERE owner = ?", .blob(owner))
    try database.run("DELETE FROM drain WHERE owner = ?", .blob(owner))
  }

  /// A new body: what the server said of the old one, and what it waited for, no longer counts. The
  /// attempts do: after one, the server may have the old body.
  public func replace(
    _ item: [UInt8], shape: [UInt8], body: [UInt8], size: Int64
  ) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET shape = ?2, body = ?3, size = ?4, verdict = NULL, cohort = 0, denials = 0,
        not_before_ms = 0,
        state = CASE WHEN state = 2 AND hold = 3 THEN state ELSE 0 END,
        hold = CASE WHEN state = 2 AND hold = 3 THEN hold ELSE 0 END
      WHERE item = ?1
      """, .blob(item), .blob(shape), .blob(body), .int(size))
    try database.run("DELETE FROM dependency WHERE item = ?", .blob(item))
  }

  // MARK: Lists

  public func page(
    of owner: [UInt8], state: ItemState?, after sequence: Int64, limit: Int
  ) throws(Failure) -> [QueueRow] {
    try database.all(
      """
      SELECT seq, item, owner, org, shape, state, hold, cohort, attempts, denials, not_before_ms,
        created_ms, size, body, verdict
      FROM queue NOT INDEXED
      WHERE owner = ?1 AND (?2 IS NULL OR state = ?2) AND seq > ?3 ORDER BY seq LIMIT ?4
      """, .blob(owner), Value(state?.rawValue), .int(sequence), .int(limit)
    ) { (row) throws(Failure) in QueueTable.read(row) }
  }

  public func counts(of owner: [UInt8]) throws(Failure) -> QueueCounts {
    var result = QueueCounts()
    try database.each(
      "SELECT state, count(*) FROM queue WHERE owner = ? GROUP BY state", [.blob(owner)]
    ) { (row) throws(Failure) in
      switch ItemState(rawValue: row.int(0)) {
      case .pending: result.pending = row.int(1)
      case .sending: result.sending = row.int(1)
      case .waiting: result.waiting = row.int(1)
      case .parked: result.parked = row.int(1)
      case nil: break
      }
      return true
    }
    return result
  }

  public func holds(of owner: [UInt8]) throws(Failure) -> [(hold: Hold, count: Int64, until: Int64)]
  {
    try database.all(
      """
      SELECT hold, count(*), min(not_before_ms) FROM queue WHERE owner = ? AND state = 2
      GROUP BY hold
      """, .blob(owner)
    ) { (row) throws(Failure) in (Hold(rawValue: row.int(0)) ?? .none, row.int(1), row.int(2)) }
  }

  /// Items of other owners: they wait for their owner's sign-in.
  public func countOfOthers(than owner: [UInt8]?) throws(Failure) -> Int64 {
    try database.first(
      "SELECT count(*) FROM queue WHERE owner IS NOT ?", Value(owner)
    ) { (row) throws(Failure) in row.int(0) } ?? 0
  }

  // The states stand in the statements: one that is bound where an index has a condition makes
  // SQLite plan anew every time.

  public func hasPending(of owner: [UInt8]) throws(Failure) -> Bool {
    try has("SELECT 1 FROM queue WHERE owner = ? AND state = 0 LIMIT 1", owner)
  }

  public func hasSending(of owner: [UInt8]) throws(Failure) -> Bool {
    try has("SELECT 1 FROM queue WHERE owner = ? AND state = 1 LIMIT 1", owner)
  }

  private func has(_ sql: StaticCString, _ owner: [UInt8]) throws(Failure) -> Bool {
    try database.first(sql, .blob(owner)) { (_) throws(Failure) in true } ?? false
  }

  // MARK: Batches

  /// Lease the next items that may travel together, oldest first, within the limits; `freshItems`
  /// is that of those that were not refused together with others.
  public func take(
    of owner: [UInt8], holder: [UInt8], until leaseMS: Int64, maximumItems: Int,
    freshItems: Int = .max, maximumSize: Int64
  ) throws(Failure) -> [QueueRow] {
    try database.transaction { () throws(Failure) in
      let head = try database.first(
        """
        SELECT shape, cohort FROM queue WHERE owner = ?1 AND state = 0
        ORDER BY cohort, shape, seq LIMIT 1
        """, .blob(owner)
      ) { (row) throws(Failure) in (row.blob(0), row.int(1)) }
      guard let head else { return [] }
      var rows: [QueueRow] = []
      var size: Int64 = 0
      try database.each(
        """
        SELECT seq, item, owner, org, shape, state, hold, cohort, attempts, denials,
          not_before_ms, created_ms, size, body, verdict
        FROM queue WHERE owner = ?1 AND state = 0 AND cohort = ?3 AND shape = ?2
        ORDER BY seq LIMIT ?4
        """,
        [
          .blob(owner), .blob(head.0), .int(head.1),
          .int(head.1 == 0 ? min(maximumItems, freshItems) : maximumItems),
        ]
      ) { (row) throws(Failure) in
        size += row.int(12)
        if !rows.isEmpty, size > maximumSize { return false }
        rows.append(QueueTable.read(row))
        return true
      }
      guard let last = rows.last else { return rows }
      try database.run(
        """
        UPDATE queue SET state = 1, hold = 0, lease = ?5, lease_ms = ?6
        WHERE owner = ?1 AND state = 0 AND cohort = ?3 AND shape = ?2 AND seq <= ?4
        """, .blob(owner), .blob(head.0), .int(head.1), .int(last.sequence), .blob(holder),
        .int(leaseMS))
      return rows
    }
  }

  /// The items in this holder's hands, in their order.
  public func leased(by holder: [UInt8]) throws(Failure) -> [Int64] {
    try database.all(
      "SELECT seq FROM queue WHERE state = 1 AND lease = ? ORDER BY seq", .blob(holder)
    ) { (row) throws(Failure) in row.int(0) }
  }

  /// Out of the request and into another state.
  public func settle(
    _ sequence: Int64, _ state: ItemState, hold: Hold = .none, notBeforeMS: Int64 = 0,
    attempted: Bool = false, denied: Bool = false, verdict: [UInt8]? = nil, cohort: Int64? = nil
  ) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = ?2, hold = ?3, not_before_ms = ?4, attempts = attempts + ?5,
        denials = denials + ?6, verdict = ?7, lease = NULL, lease_ms = 0,
        cohort = CASE ?2 WHEN 3 THEN 0 ELSE ifnull(?8, cohort) END
      WHERE seq = ?1
      """, .int(sequence), .int(state.rawValue), .int(hold.rawValue), .int(notBeforeMS),
      .int(attempted ? 1 : 0), .int(denied ? 1 : 0), Value(verdict), Value(cohort))
  }

  public func assign(_ sequence: Int64, cohort: Int64) throws(Failure) {
    try database.run(
      "UPDATE queue SET cohort = ?2 WHERE seq = ?1", .int(sequence), .int(cohort))
  }

  /// Items that could travel with this one wait for a while: the server takes none of them.
  public func suspend(like sequence: Int64, of owner: [UInt8], until ms: Int64) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 2, hold = 2, not_before_ms = ?3
      WHERE owner = ?1 AND state = 0 AND shape = (SELECT shape FROM queue WHERE seq = ?2)
      """, .blob(owner), .int(sequence), .int(ms))
  }

  /// The holders of items in requests, with the lease's end.
  public func leases() throws(Failure) -> [(holder: [UInt8], untilMS: Int64)] {
    try database.all(
      "SELECT lease, max(lease_ms) FROM queue INDEXED BY queue_leased WHERE state = 1 GROUP BY lease"
    ) { (row) throws(Failure) in (row.blob(0), row.int(1)) }
  }

  /// Take a dead or late holder's items back. What became of them is unknown, so it was an attempt.
  public func reclaim(from holder: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 0, hold = 0, lease = NULL, lease_ms = 0, attempts = attempts + 1
      WHERE state = 1 AND lease IS ?1
      """, .blob(holder))
  }

  // MARK: Waiting

  /// Items whose time has come become pending.
  public func promote(of owner: [UInt8], now: Int64) throws(Failure) {
    // Whoever only looks must not wait for another process's write.
    guard let due = try nextMS(of: owner), due <= now else { return }
    try database.run(
      """
      UPDATE queue SET state = 0, hold = 0
      WHERE owner = ?1 AND state = 2 AND hold = 2 AND not_before_ms <= ?2
      """, .blob(owner), .int(now))
  }

  /// Items of kinds that were unknown are tried again: the configuration may be another one now.
  public func releaseKinds() throws(Failure) {
    // Asked first: every start would wait for the write lock.
    let isHeld =
      try database.first("SELECT 1 FROM queue WHERE state = 2 AND hold = 4 LIMIT 1") {
        (_) throws(Failure) in true
      } ?? false
    guard isHeld else { return }
    try database.run("UPDATE queue SET state = 0, hold = 0 WHERE state = 2 AND hold = 4")
  }

  /// Whether any item waits for this.
  public func waits(for hold: Hold, of owner: [UInt8]) throws(Failure) -> Bool {
    try database.first(
      "SELECT 1 FROM queue WHERE owner = ?1 AND state = 2 AND hold = ?2 LIMIT 1", .blob(owner),
      .int(hold.rawValue)
    ) { (_) throws(Failure) in true } ?? false
  }

  /// Whether the server may have stored an item of the organisation's of which that is not proved. (One
  /// that waits for its parent was refused for it, which proves that it is not stored.)
  public func isInDoubt(org: [UInt8], of owner: [UInt8]) throws(Failure) -> Bool {
    try database.first(
      """
      SELECT 1 FROM queue WHERE owner = ?1 AND org = ?2 AND attempts > 0
        AND (state IN (0, 1) OR state = 2 AND hold <> ?3) LIMIT 1
      """, .blob(owner), .blob(org), .int(Hold.dependency.rawValue)
    ) { (_) throws(Failure) in true } ?? false
  }

  /// When the next item's time comes.
  public func nextMS(of owner: [UInt8]) throws(Failure) -> Int64? {
    try database.first(
      """
      SELECT min(not_before_ms) FROM queue
      WHERE owner = ?1 AND state = 2 AND hold = 2
      """, .blob(owner)
    ) { (row) throws(Failure) in row.int(ifPresent: 0) } ?? nil
  }

  /// The server let the organisation in again.
  public func release(org: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET
        state = CASE WHEN item IN (SELECT item FROM dependency) THEN 2 ELSE 0 END,
        hold = CASE WHEN item IN (SELECT item FROM dependency) THEN 1 ELSE 0 END
      WHERE owner = ?1 AND org = ?2 AND state = 2 AND hold = 3
      """, .blob(owner), .blob(org))
  }

  /// What is still held belongs to organisations that the user is not in: what they refused before
  /// says nothing about the time after the user's return.
  public func forgetDenials(of owner: [UInt8]) throws(Failure) {
    try database.run(
      "UPDATE queue SET denials = 0 WHERE owner = ?1 AND state = 2 AND hold = 3", .blob(owner))
  }

  public func hold(org: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE queue SET state = 2, hold = 3
      WHERE owner = ?1 AND org = ?2 AND (state = 0 OR (state = 2 AND hold = 2))
      """, .blob(owner), .blob(org))
  }

  /// The user asks for another try: of one item, or of all that are parked.
  public func retry(_ item: [UInt8]?, of owner: [UInt8]) throws(Failure) -> Int {
    try database.run(
      """
      UPDATE queue SET cohort = 0, denials = 0, not_before_ms = 0, verdict = NULL,
        state = CASE WHEN item IN (SELECT item FROM dependency) THEN 2 ELSE 0 END,
        hold = CASE WHEN item IN (SELECT item FROM dependency) THEN 1 ELSE 0 END
      WHERE owner = ?1 AND ((?2 IS NULL AND state = 3) OR
        (item = ?2 AND (state = 3 OR (state = 2 AND hold <> 1))))
      """, .blob(owner), Value(item))
  }

  // MARK: Dependencies

  /// Link them. False when `parent` itself waits for `item`, at whatever distance: then neither
  /// could ever go.
  @discardableResult
  public func addDependency(_ item: [UInt8], on parent: [UInt8]) throws(Failure) -> Bool {
    try database.run(
      """
      WITH RECURSIVE above(item) AS (VALUES(?2)
        UNION SELECT parent FROM dependency JOIN above USING (item))
      INSERT OR IGNORE INTO dependency(item, parent) SELECT ?1, ?2
      WHERE NOT EXISTS (SELECT 1 FROM above WHERE item = ?1)
      """, .blob(item), .blob(parent))
    return try database.first(
      "SELECT 1 FROM dependency WHERE item = ?1 AND parent = ?2", .blob(item), .blob(parent)
    ) { (_) throws(Failure) in true } ?? false
  }

  /// Whether anything that the item waits for, at whatever distance, is parked.
  public func waitsForParked(_ item: [UInt8]) throws(Failure) -> Bool {
    try database.first(
      """
      WITH RECURSIVE above(item) AS (SELECT parent FROM dependency WHERE item = ?1
        UNION SELECT parent FROM dependency JOIN above USING (item))
      SELECT 1 FROM above JOIN queue USING (item) WHERE state = 3 LIMIT 1
      """, .blob(item)
    ) { (_) throws(Failure) in true } ?? false
  }

  /// A parked item whose tag begins so: one that does not open tells no id of its own.
  public func findParked(_ prefix: [UInt8], of owner: [UInt8]) throws(Failure) -> [UInt8]? {
    try database.first(
      "SELECT item FROM queue WHERE owner = ?1 AND state = 3 AND substr(item, 1, 16) = ?2",
      .blob(owner), .blob(prefix)
    ) { (row) throws(Failure) in row.blob(0) }
  }

  /// The item's dependencies that are still queued.
  public func dependencies(of item: [UInt8]) throws(Failure) -> [QueueRow] {
    try database.all(
      """
      SELECT seq, q.item, owner, org, shape, state, hold, cohort, attempts, denials, not_before_ms,
        created_ms, size, body, verdict
      FROM dependency d JOIN queue q ON q.item = d.parent WHERE d.item = ?
      """, .blob(item)
    ) { (row) throws(Failure) in QueueTable.read(row) }
  }

  /// Whatever waited only for `parent` may go; how many did.
  @discardableResult
  public func releaseDependents(of parent: [UInt8]) throws(Failure) -> Int {
    let children = try database.all(
      "SELECT item FROM dependency WHERE parent = ?", .blob(parent)
    ) { (row) throws(Failure) in row.blob(0) }
    try database.run("DELETE FROM dependency WHERE parent = ?", .blob(parent))
    var released = 0
    for child in children {
      released += try database.run(
        """
        UPDATE queue SET state = 0, hold = 0
        WHERE item = ?1 AND state = 2 AND hold = 1
          AND NOT EXISTS (SELECT 1 FROM dependency WHERE item = ?1)
        """, .blob(child))
    }
    return released
  }

  // MARK: Drains

  /// A drain's running totals, kept over restarts.
  public struct Drain: Sendable {
    public var startedMS: Int64
    public var sent: Int64
    public var parked: Int64
  }

  public func drain(of owner: [UInt8]) throws(Failure) -> Drain? {
    try database.first(
      "SELECT started_ms, sent, parked FROM drain WHERE owner = ?", .blob(owner)
    ) { (row) throws(Failure) in
      Drain(startedMS: row.int(0), sent: row.int(1), parked: row.int(2))
    }
  }

  public func countInDrain(
    of owner: [UInt8], sent: Int64, parked: Int64, now: Int64
  ) throws(Failure) {
    try database.run(
      """
      INSERT INTO drain(owner, started_ms, sent, parked) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT(owner) DO UPDATE SET sent = sent + ?3, parked = parked + ?4
      """, .blob(owner), .int(now), .int(sent), .int(parked))
  }

  public func endDrain(of owner: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM drain WHERE owner = ?", .blob(owner))
  }
}
