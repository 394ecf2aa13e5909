public import Base

/// Who of several processes does a thing; a dead holder's lease runs out.
public struct LeaseTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Take or renew it. The caller has seen, in the same transaction, that no other holds it.
  public func take(_ name: String, holder: [UInt8], until expiresMS: Int64) throws(Failure) {
    try database.run(
      """
      INSERT INTO lease(name, holder, expires_ms) VALUES (?1, ?2, ?3)
      ON CONFLICT(name) DO UPDATE SET holder = ?2, expires_ms = ?3
      """, .text(name), .blob(holder), .int(expiresMS))
  }

  public func release(_ name: String, holder: [UInt8]) throws(Failure) {
    try database.run(
      "DELETE FROM lease WHERE name = ?1 AND holder = ?2", .text(name), .blob(holder))
  }

  /// Another's lease that has not run out; one that ends absurdly late was written under a wrong
  /// clock and counts as run out.
  public func holder(_ name: String, notBy holder: [UInt8], now: Int64) throws(Failure) -> [UInt8]?
  {
    try database.first(
      """
      SELECT holder FROM lease
      WHERE name = ?1 AND holder <> ?2 AND expires_ms > ?3 AND expires_ms <= ?3 + 3600000
      """, .text(name), .blob(holder), .int(now)
    ) { (row) throws(Failure) in row.blob(0) }
  }

  /// When another's lease runs out; nil: it is free or ours.
  public func heldUntil(_ name: String, notBy holder: [UInt8], now: Int64) throws(Failure) -> Int64?
  {
    try database.first(
      """
      SELECT expires_ms FROM lease
      WHERE name = ?1 AND holder <> ?2 AND expires_ms > ?3 AND expires_ms <= ?3 + 3600000
      """, .text(name), .blob(holder), .int(now)
    ) { (row) throws(Failure) in row.int(0) }
  }
}

/// When a service may be asked again.
public struct BackoffTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  public func read(_ service: String) throws(Failure) -> (attempts: Int64, notBeforeMS: Int64) {
    try database.first(
      "SELECT attempts, not_before_ms FROM backoff WHERE service = ?", .text(service)
    ) { (row) throws(Failure) in (row.int(0), row.int(1)) } ?? (0, 0)
  }

  public func set(_ service: String, attempts: Int64, notBeforeMS: Int64) throws(Failure) {
    try database.run(
      """
      INSERT INTO backoff(service, attempts, not_before_ms) VALUES (?1, ?2, ?3)
      ON CONFLICT(service) DO UPDATE SET attempts = ?2, not_before_ms = ?3
      """, .text(service), .int(attempts), .int(notBeforeMS))
  }

  public func clear(_ service: String) throws(Failure) {
    try database.run("DELETE FROM backoff WHERE service = ?", .text(service))
  }
}
