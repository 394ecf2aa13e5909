public import Base

/// Named, expiring, cross-process locks.
///
/// A lease that ends more than an hour from now is longer than any that is taken: it was stored in
/// another boot, under another clock, and counts as expired.
public struct LeaseTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Take or renew a lease. The caller has checked in the same transaction that nobody else holds
  /// it.
  public func take(_ name: String, holder: [UInt8], until expires: SteadyTime) throws(Failure) {
    try database.run(
      """
      INSERT INTO lease(name, holder, expires_ms) VALUES (?1, ?2, ?3)
      ON CONFLICT(name) DO UPDATE SET holder = ?2, expires_ms = ?3
      """, .text(name), .blob(holder), .int(expires.ms))
  }

  public func release(_ name: String, holder: [UInt8]) throws(Failure) {
    try database.run(
      "DELETE FROM lease WHERE name = ?1 AND holder = ?2", .text(name), .blob(holder))
  }

  /// The unexpired lease of another holder; nil: it is free or ours.
  public func other(
    _ name: String, than holder: [UInt8], now: SteadyTime
  ) throws(Failure) -> (holder: [UInt8], until: SteadyTime)? {
    try database.first(
      """
      SELECT holder, expires_ms FROM lease
      WHERE name = ?1 AND holder <> ?2 AND expires_ms > ?3 AND expires_ms <= ?3 + 3600000
      """, .text(name), .blob(holder), .int(now.ms)
    ) { (row) throws(Failure) in (row.blob(0), SteadyTime(ms: row.int(1))) }
  }
}
