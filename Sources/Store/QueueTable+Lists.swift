public import Base

extension QueueTable {
  public func hasPending(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue WHERE owner = ? AND state = 0", .blob(owner))
  }

  public func hasSending(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue WHERE owner = ? AND state = 1", .blob(owner))
  }

  public func hasWaitingForOrganisation(of owner: [UInt8]) throws(Failure) -> Bool {
    try database.exists(
      "SELECT 1 FROM queue WHERE owner = ?1 AND state = 2 AND wait_reason = 3",
      .blob(owner))
  }

  /// Whether the server may have stored an item of the organisation (nil: of any) without a proof of it here. (An
  /// item that waits for its parent was refused for it, and of one that was refused on the way the
  /// server was asked, so they are not stored.)
  public func mayBeStored(org: [UInt8]?, of owner: [UInt8]) throws(Failure) -> Bool {
    // The index has these items alone, and they are few.
    try database.exists(
      """
      SELECT 1 FROM queue INDEXED BY queue_attempted
      WHERE owner = ?1 AND (?2 IS NULL OR org = ?2) AND attempts > 0
        AND (state < 2 OR state = 2 AND wait_reason NOT IN (1, 6))
      """, .blob(owner), Value(org))
  }

  // MARK: The user's lists

  /// The newest items of a list before a place, from a time on.
  public func listed(
    in list: [UInt8], before place: ListPlace, fromMS: Int64, limit: Int
  ) throws(Failure) -> [QueueRow] {
    try database.all(
      """
      SELECT * FROM queue INDEXED BY queue_listed
      WHERE list = ?1 AND listed_ms >= ?2 AND (listed_ms, item) < (?3, ?4)
      ORDER BY listed_ms DESC, item DESC LIMIT ?5
      """, .blob(list), .int(fromMS), .int(place.ms), .blob(place.row), .int(limit)
    ) { (row) throws(Failure) in QueueRow(row) }
  }

  /// Whether the list has an item.
  public func isListed(in list: [UInt8]) throws(Failure) -> Bool {
    try database.exists("SELECT 1 FROM queue WHERE list = ?", .blob(list))
  }
}
