public import Base

/// Events that must reach a user, sealed, until the host acknowledges them.
public struct DurableEventTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// `owner` nil: for any user of the device.
  public func add(_ sequence: Int64, owner: [UInt8]?, sealed: [UInt8]) throws(Failure) {
    try database.run(
      "INSERT INTO durable_event(seq, owner, sealed) VALUES (?, ?, ?)", .int(sequence),
      Value(owner),
      .blob(sealed))
  }

  /// The oldest events after `cursor`: at most `limit`, and no more than `size` sealed bytes, but at
  /// least one. `next` is the number of the first event that was left out.
  public func page(
    for owner: [UInt8]?, after cursor: EventCursor, limit: Int, size: Int
  ) throws(Failure) -> (events: [(Int64, [UInt8])], next: Int64?) {
    var events: [(Int64, [UInt8])] = []
    var next: Int64?
    var left = size
    try database.each(
      """
      SELECT seq, sealed FROM durable_event WHERE seq > min(?1, ?3) AND
        ((owner IS NULL AND seq > ?1) OR (owner = ?2 AND seq > ?3)) ORDER BY seq
      """, [.int(cursor.common), Value(owner), .int(cursor.own)]
    ) { (row) throws(Failure) -> Bool in
      let event = (row.count(0), row.blob(1))
      left -= event.1.count
      guard events.isEmpty || (events.count < limit && left >= 0) else {
        next = event.0
        return false
      }
      events.append(event)
      return true
    }
    return (events, next)
  }

  /// Whether there is an event after `cursor`.
  public func hasAny(for owner: [UInt8]?, after cursor: EventCursor) throws(Failure) -> Bool {
    try database.exists(
      """
      SELECT 1 FROM durable_event WHERE seq > min(?1, ?3) AND
        ((owner IS NULL AND seq > ?1) OR (owner = ?2 AND seq > ?3)) LIMIT 1
      """, .int(cursor.common), Value(owner), .int(cursor.own))
  }

  /// Delete the events up to `sequence`, but none after `cursor`.
  public func acknowledge(
    upTo sequence: Int64, for owner: [UInt8]?, within cursor: EventCursor
  ) throws(Failure) {
    try database.run(
      """
      DELETE FROM durable_event WHERE seq <= ?3 AND
        ((owner IS NULL AND seq <= ?1) OR (owner = ?2 AND seq <= ?4))
      """, .int(cursor.common), Value(owner), .int(sequence), .int(cursor.own))
  }
}

/// Numbers of durable events: the last of nobody's, and the last of one owner's. They differ, because
/// the next user's events may be older than the last user's.
public struct EventCursor: Equatable, Sendable {
  public var common: Int64
  public var own: Int64

  /// Before the first event.
  public init() { (common, own) = (0, 0) }

  public init(common: Int64, own: Int64) { (self.common, self.own) = (common, own) }
}
