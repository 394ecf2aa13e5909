public import Base

/// Pages of the queue in the order of the sequence numbers. The table has that order for all items. No
/// index has it for the items of one state, which would cost every insert: their numbers are taken
/// from `queue_ready` and sorted.
extension QueueTable {
  /// The next items after a sequence number, in one state or (nil) in any.
  public func page(
    of owner: [UInt8], state: ItemState.Code?, after sequence: Int64, limit: Int
  ) throws(Failure) -> [QueueRow] {
    guard let state else {
      return try database.all(
        "SELECT * FROM queue NOT INDEXED WHERE owner = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        .blob(owner), .int(sequence), .int(limit)
      ) { (row) throws(Failure) in QueueRow(row) }
    }
    return try database.all(
      """
      SELECT * FROM queue WHERE seq IN (SELECT seq FROM queue INDEXED BY queue_ready
        WHERE owner = ?1 AND state = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4)
      ORDER BY seq
      """, .blob(owner), .int(state.rawValue), .int(sequence), .int(limit)
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
      let rows = try page(of: owner, state: nil, after: after, limit: limit)
      for row in rows where state == nil || row.state.code == state { try body(row) }
      guard rows.count == limit, let last = rows.last else { return }
      after = last.sequence
    }
  }
}
