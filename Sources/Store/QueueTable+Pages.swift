public import Base

/// Pages of the queue in the order of the sequence numbers.
///
/// No index has this order for one owner or one state: it would cost every insert. The table has it for
/// all items, which serves where all are wanted. Else the index `queue_ready` serves: it has the numbers
/// in order for each retry group and batch key. These are few, so a page is merged from them.
extension QueueTable {
  /// Where there are more groups, the table is read.
  private static var mostGroups: Int { 64 }

  /// The next items after a sequence number, in one state or (nil) in any.
  public func page(
    of owner: [UInt8], state: ItemState.Code?, after sequence: Int64, limit: Int
  ) throws(Failure) -> [QueueRow] {
    if state == nil, try !hasOthers(than: owner) {
      return try readPage(of: owner, state: nil, after: sequence, limit: limit)
    }
    guard let groups = try groups(of: owner, state) else {
      return try readPage(of: owner, state: state, after: sequence, limit: limit)
    }
    var sequences: [Int64] = []
    for group in groups {
      sequences += try database.all(
        """
        SELECT seq FROM queue INDEXED BY queue_ready
        WHERE owner = ?1 AND state = ?2 AND retry_group = ?3 AND batch_key = ?4 AND seq > ?5
        ORDER BY seq LIMIT ?6
        """, .blob(owner), .int(group.state), .int(group.retryGroup), .blob(group.batchKey),
        .int(sequence), .int(limit)
      ) { (row) throws(Failure) in row.count(0) }
    }
    var rows: [QueueRow] = []
    for sequence in sequences.ordered() {
      if rows.count == limit { break }
      let row = try database.first("SELECT * FROM queue WHERE seq = ?", .int(sequence)) {
        (row) throws(Failure) in QueueRow(row)
      }
      if let row { rows.append(row) }
    }
    return rows
  }

  private func readPage(
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

  private typealias Group = (state: Int64, retryGroup: Int64, batchKey: [UInt8])

  /// The retry groups and batch keys of an owner's items: two steps in the index for each. nil: there are
  /// too many, or what is in the file is none of ours.
  private func groups(
    of owner: [UInt8], _ state: ItemState.Code?
  ) throws(Failure) -> [Group]? {
    if state == nil, try hasUnknownStates(of: owner) { return nil }
    var found: [Group] = []
    var isOurs = true
    for state in state.map({ [$0] }) ?? ItemState.Code.allCases {
      var retryGroup: Int64 = -1
      var batchKey: [UInt8]?
      while true {
        let next = try database.first(
          batchKey == nil
            ? """
            SELECT retry_group, batch_key FROM queue INDEXED BY queue_ready
            WHERE owner = ?1 AND state = ?2 AND retry_group > ?3 AND ?4 IS NULL
            ORDER BY retry_group, batch_key LIMIT 1
            """
            : """
            SELECT retry_group, batch_key FROM queue INDEXED BY queue_ready
            WHERE owner = ?1 AND state = ?2 AND retry_group = ?3 AND batch_key > ?4
            ORDER BY batch_key LIMIT 1
            """, .blob(owner), .int(state.rawValue), .int(retryGroup), Value(batchKey)
        ) { (row) throws(Failure) -> Group in
          isOurs = isOurs && row.integer(0) ?? -1 >= 0 && row.isBlob(1)
          return (state.rawValue, row.integer(0) ?? 0, row.blob(1))
        }
        guard isOurs, found.count <= QueueTable.mostGroups else { return nil }
        if let next {
          found.append(next)
          (retryGroup, batchKey) = (next.retryGroup, next.batchKey)
        } else if batchKey != nil {
          batchKey = nil
        } else {
          break
        }
      }
    }
    return found
  }
}
