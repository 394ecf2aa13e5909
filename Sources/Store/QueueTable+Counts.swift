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

/// The counts of the queue are kept, not made by a scan: the table `queue_count` has a row for each place
/// that items of an owner were in. All statements that add, remove or move items report to `move`, in
/// their transaction.
///
/// Nothing is decided by a count that could harm an item: what is sent, released or erased follows from
/// the rows. Kept counts can be wrong after somebody else has written the file, or damage. So a reader
/// compares them with what one step in an index tells, whether a place has any items, and a writer never
/// takes away more than is there. Where that fails, the items are counted anew, and so they are when a
/// file was checked whole.
extension QueueTable {
  /// Where an item counts: its state's number, and if it waits, its reason's.
  struct Place: Equatable {
    let state: Int64
    let reason: Int64

    init(_ state: ItemState) {
      (self.state, reason) = (state.code.rawValue, state.waitReason?.code ?? 0)
    }

    /// An unknown state counts as pending, and an unknown reason as that of an unknown kind: a process
    /// settles both (`settleStates`).
    init(state: Int64?, reason: Int64?) {
      let known = state.flatMap { ItemState.Code(rawValue: $0) } ?? .pending
      self.state = known.rawValue
      if known == .waiting {
        self.reason = WaitReason(code: reason, notBeforeMS: 0)?.code ?? WaitReason.kind.code
      } else {
        self.reason = 0
      }
    }

    static var pending: Place { Place(.pending) }
    static var sending: Place { Place(.sending) }
    static var parked: Place { Place(.parked) }
    static func waiting(_ reason: WaitReason) -> Place { Place(.waiting(reason)) }
  }

  // MARK: Writing

  /// Items of an owner have moved; nil: from or to outside the queue. Call it in the transaction that
  /// moved them.
  @inline(never)
  func move(
    _ number: Int = 1, of owner: [UInt8], from: Place?, to: Place?
  ) throws(Failure) {
    guard number > 0, from != to else { return }
    if let from {
      let isPossible =
        try database.run(
          """
          UPDATE queue_count SET items = items - ?4
          WHERE owner = ?1 AND state = ?2 AND wait_reason = ?3 AND items >= ?4
          """, .blob(owner), .int(from.state), .int(from.reason), .int(number)) == 1
      // The rows have moved already, so counting them includes this move.
      if !isPossible { return try recount() }
    }
    guard let to else { return }
    try database.run(
      """
      INSERT INTO queue_count(owner, state, wait_reason, items) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT(owner, state, wait_reason) DO UPDATE SET items = items + ?4
      """, .blob(owner), .int(to.state), .int(to.reason), .int(number))
  }

  typealias Placed = (owner: [UInt8], place: Place, sequence: Int64)

  /// Whose an item is, where it counts, and its number; nil: there is no such item.
  @inline(never)
  func place(of item: [UInt8]) throws(Failure) -> Placed? {
    try database.first(
      "SELECT owner, state, wait_reason, seq FROM queue WHERE item = ?", .blob(item),
      read: QueueTable.place)
  }

  @inline(never)
  func place(of sequence: Int64) throws(Failure) -> Placed? {
    try database.first(
      "SELECT owner, state, wait_reason, seq FROM queue WHERE seq = ?", .int(sequence),
      read: QueueTable.place)
  }

  private static func place(_ row: Row) throws(Failure) -> Placed {
    (row.blob(0), Place(state: row.integer(1), reason: row.integer(2)), row.integer(3) ?? 0)
  }

  /// Change one item, and keep the counts; how many `change` has changed. `isRewritten`: its body is
  /// another one, which may count for something else.
  @discardableResult
  @inline(never)
  func moving(
    _ item: [UInt8], isRewritten: Bool = false, _ change: () throws(Failure) -> Int
  ) throws(Failure) -> Int {
    try database.transaction { () throws(Failure) in
      let before = try place(of: item)
      let changed = try change()
      if let before {
        let after = try place(of: item)?.place
        try move(of: before.owner, from: before.place, to: after)
        if isRewritten || (before.place == .parked) != (after == .parked) {
          try blocks.forget(before.sequence)
        }
      }
      return changed
    }
  }

  /// Change an owner's items that all are in one place, and move to another; how many.
  @discardableResult
  @inline(never)
  func moving(
    of owner: [UInt8], from: Place, to: Place, _ change: () throws(Failure) -> Int
  ) throws(Failure) -> Int {
    try database.transaction { () throws(Failure) in
      let changed = try change()
      try move(changed, of: owner, from: from, to: to)
      return changed
    }
  }

  func delete(_ item: [UInt8]) throws(Failure) { try delete([item]) }

  /// Delete items. Those of an upload were in one place, so the counts are changed once.
  @inline(never)
  func delete(_ items: [[UInt8]]) throws(Failure) {
    try database.transaction { () throws(Failure) in
      var last: (owner: [UInt8], place: Place, number: Int)?
      var changed: [Int64] = []
      for item in items {
        guard let (owner, place, sequence) = try place(of: item) else { continue }
        changed.append(QueueBlockTable.block(of: sequence, 0))
        let deleted = try database.run("DELETE FROM queue WHERE item = ?", .blob(item))
        if let known = last, known.owner == owner, known.place == place {
          last?.number += deleted
          continue
        }
        if let last { try move(last.number, of: last.owner, from: last.place, to: nil) }
        last = (owner, place, deleted)
      }
      if let last { try move(last.number, of: last.owner, from: last.place, to: nil) }
      try blocks.forget(changed)
    }
  }

  /// The counts and sums of an owner whose items are all gone.
  func removeCounts(of owner: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM queue_count WHERE owner = ?", .blob(owner))
    try database.run("DELETE FROM queue_block WHERE owner = ?", .blob(owner))
  }

  // MARK: Counting anew

  /// The kept counts cannot be right.
  private func recount() throws(Failure) {
    try countAnew()
    Log.line(.warning, "the kept counts of queued items were wrong; the items were counted anew")
  }

  /// Count all items, by the indexes alone.
  @inline(never)
  func countAnew() throws(Failure) {
    try database.transaction { () throws(Failure) in
      try database.run("DELETE FROM queue_count")
      try blocks.removeAll()
      try database.run(
        """
        INSERT INTO queue_count(owner, state, wait_reason, items)
        SELECT owner, CASE WHEN state IN (1, 3) THEN state ELSE 0 END AS place, 0, count(*)
        FROM queue INDEXED BY queue_ready WHERE state <> 2 GROUP BY owner, place
        """)
      try database.run(
        """
        INSERT INTO queue_count(owner, state, wait_reason, items)
        SELECT owner, 2, CASE WHEN wait_reason IN (1, 2, 3, 5, 6) THEN wait_reason ELSE 4 END AS place,
          count(*)
        FROM queue INDEXED BY queue_held WHERE state = 2 GROUP BY owner, place
        """)
    }
  }

  /// Compare the sum of the counts with the number of items, for a file that was checked whole.
  public func checkCounts() throws(Failure) {
    let isWrong = try database.first(
      "SELECT (SELECT count(*) FROM queue) <> total(items) FROM queue_count"
    ) { (row) throws(Failure) in row.int(0) != 0 }
    if isWrong ?? true { try recount() }
  }

  /// The counts of an owner by scan, for a reader that found the kept ones wrong.
  @inline(never)
  private func scan(of owner: [UInt8]?) throws(Failure) -> [Kept] {
    try database.all(
      """
      SELECT state, 0, count(*) FROM queue INDEXED BY queue_ready
      WHERE (?1 IS NULL OR owner = ?1) AND state <> 2 GROUP BY state
      UNION ALL
      SELECT 2, wait_reason, count(*) FROM queue INDEXED BY queue_held
      WHERE (?1 IS NULL OR owner = ?1) AND state = 2 GROUP BY wait_reason
      """, Value(owner)
    ) { (row) throws(Failure) in
      (Place(state: row.integer(0), reason: row.integer(1)), row.count(2))
    }
  }

  // MARK: Reading

  typealias Kept = (place: Place, items: Int64)

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
      if Row.counts.contains(items), (items > 0) == (row.int(3) == 1) {
        if items > 0 { found.append((Place(state: row.int(0), reason: row.int(1)), items)) }
        return true
      }
      isPossible = false
      return false
    }
    if isPossible { return found }
    found = try scan(of: owner)
    try recountIfFree()
    return found
  }

  /// How many items an owner has, by their rows: before they are all deleted.
  public func countRows(of owner: [UInt8]) throws(Failure) -> Int64 {
    try scan(of: owner).reduce(0) { $0 + $1.items }
  }

  /// Count anew, unless this is a part of a transaction: a reader must not fail for it.
  @inline(never)
  private func recountIfFree() throws(Failure) {
    guard !database.isInTransaction else { return }
    do throws(Failure) { try recount() } catch  where error.code != .memoryExhausted {}
  }

  public func counts(of owner: [UInt8]) throws(Failure) -> QueueCounts {
    var result = QueueCounts()
    for (place, items) in try kept(of: owner) {
      switch ItemState.Code(rawValue: place.state) {
      case .pending, nil: result.pending += items
      case .sending: result.sending += items
      case .waiting: result.waiting += items
      case .parked: result.parked += items
      }
    }
    return result
  }

  /// How many items wait for each reason; of those that wait for a time, the earliest.
  public func waitCounts(
    of owner: [UInt8]
  ) throws(Failure) -> [(reason: WaitReason, count: Int64)] {
    var result: [(reason: WaitReason, count: Int64)] = []
    for (place, items) in try kept(of: owner) where place.state == ItemState.Code.waiting.rawValue {
      let earliest = try database.first(
        """
        SELECT min(not_before_ms) FROM queue INDEXED BY queue_held
        WHERE owner = ?1 AND state = 2 AND wait_reason = ?2
        """, .blob(owner), .int(place.reason)
      ) { (row) throws(Failure) in row.int(ifPresent: 0) ?? 0 }
      guard let reason = WaitReason(code: place.reason, notBeforeMS: earliest ?? 0) else {
        continue
      }
      result.append((reason, items))
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
    var all: Int64 = 0
    for (_, items) in try scan(of: nil) { all += items }
    if let owner { for (_, items) in try scan(of: owner) { all -= items } }
    try recountIfFree()
    return all
  }

  func hasOthers(than owner: [UInt8]?) throws(Failure) -> Bool {
    try database.exists(
      """
      SELECT 1 FROM queue INDEXED BY queue_ready WHERE owner > ifnull(?1, '')
      UNION ALL SELECT 1 FROM queue INDEXED BY queue_ready WHERE owner < ?1
      """, Value(owner))
  }
}
