public import Base

/// How many items are in each state.
public struct QueueCounts: Sendable {
  public var pending: Int64 = 0
  public var sending: Int64 = 0
  public var waiting: Int64 = 0
  public var parked: Int64 = 0
  public var total: Int64 { pending + sending + waiting + parked }

  public init() {}
}

extension QueueTable {
  /// The next items after a sequence number, in one state or (nil) in any.
  public func page(
    of owner: [UInt8], state: ItemState.Code?, after sequence: Int64, limit: Int
  ) throws(Failure) -> [QueueRow] {
    try database.all(
      """
      SELECT * FROM queue NOT INDEXED
      WHERE owner = ?1 AND (?2 IS NULL OR state = ?2) AND seq > ?3 ORDER BY seq LIMIT ?4
      """, .blob(owner), Value(state?.rawValue), .int(sequence), .int(limit)
    ) { (row) throws(Failure) in QueueRow(row) }
  }

  /// All items in one state or (nil) in any, in their order. They are read in pages, so memory is
  /// bounded and `body` may use the database.
  public func eachRow(
    of owner: [UInt8], state: ItemState.Code?, _ body: (QueueRow) throws(Failure) -> Void
  ) throws(Failure) {
    let limit = 500
    var after: Int64 = 0
    while true {
      let rows = try page(of: owner, state: state, after: after, limit: limit)
      for row in rows { try body(row) }
      guard rows.count == limit, let last = rows.last else { return }
      after = last.sequence
    }
  }

  public func counts(of owner: [UInt8]) throws(Failure) -> QueueCounts {
    var result = QueueCounts()
    try database.each(
      "SELECT state, count(*) FROM queue WHERE owner = ? GROUP BY state", [.blob(owner)]
    ) { (row) throws(Failure) in
      switch row.integer(0).flatMap({ ItemState.Code(rawValue: $0) }) {
      // An unknown state is that of an item to be sent (`settleStates`).
      case .pending, nil: result.pending += row.count(1)
      case .sending: result.sending = row.count(1)
      case .waiting: result.waiting = row.count(1)
      case .parked: result.parked = row.count(1)
      }
      return true
    }
    return result
  }

  /// How many items wait for each reason; of those that wait for a time, the earliest.
  public func waitCounts(
    of owner: [UInt8]
  ) throws(Failure) -> [(reason: WaitReason, count: Int64)] {
    var result: [(reason: WaitReason, count: Int64)] = []
    try database.each(
      """
      SELECT wait_reason, count(*), min(not_before_ms) FROM queue WHERE owner = ? AND state = 2
      GROUP BY wait_reason
      """, [.blob(owner)]
    ) { (row) throws(Failure) in
      // A reason of a newer version holds the item until a process settles it.
      result.append(
        (WaitReason(code: row.integer(0), notBeforeMS: row.int(2)) ?? .kind, row.count(1)))
      return true
    }
    return result
  }

  /// Items of other owners: they wait until their owner signs in.
  public func countOfOthers(than owner: [UInt8]?) throws(Failure) -> Int64 {
    try database.first(
      "SELECT count(*) FROM queue WHERE owner IS NOT ?", Value(owner)
    ) { (row) throws(Failure) in row.int(0) } ?? 0
  }

  public func hasPending(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue WHERE owner = ? AND state = 0 LIMIT 1", .blob(owner))
  }

  public func hasSending(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue WHERE owner = ? AND state = 1 LIMIT 1", .blob(owner))
  }

  public func hasWaitingForOrganisation(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists(
      "SELECT 1 FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason = 3 LIMIT 1",
      .blob(owner))
  }

  /// Whether the server may have stored an item of the organisation (nil: of any) without a proof of it here. (An
  /// item that waits for its parent was refused for it, and of one that was refused on the way the
  /// server was asked, so they are not stored.)
  public func isInDoubt(org: [UInt8]?, of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists(
      """
      SELECT 1 FROM queue WHERE owner = ?1 AND (?2 IS NULL OR org = ?2) AND attempts > 0
        AND (state IN (0, 1) OR state = 2 AND wait_reason NOT IN (1, 6)) LIMIT 1
      """, .blob(owner), Value(org))
  }
}
