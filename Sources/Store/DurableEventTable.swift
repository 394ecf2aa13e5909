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

  public func all(for owner: [UInt8]?, limit: Int) throws(Failure) -> [(Int64, [UInt8])] {
    try database.all(
      """
      SELECT seq, sealed FROM durable_event WHERE owner IS NULL OR owner = ?1
      ORDER BY seq LIMIT ?2
      """, Value(owner), .int(limit)
    ) { (row) throws(Failure) in (row.int(0), row.blob(1)) }
  }

  public func newest(for owner: [UInt8]?) throws(Failure) -> Int64 {
    try database.first(
      "SELECT max(seq) FROM durable_event WHERE owner IS NULL OR owner = ?1", Value(owner)
    ) { (row) throws(Failure) in row.int(0) } ?? 0
  }

  public func acknowledge(upTo sequence: Int64, for owner: [UInt8]?) throws(Failure) {
    try database.run(
      "DELETE FROM durable_event WHERE seq <= ?2 AND (owner IS NULL OR owner = ?1)", Value(owner),
      .int(sequence))
  }
}
