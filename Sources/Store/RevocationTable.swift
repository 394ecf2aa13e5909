public import Base

/// Sessions that are still to be revoked on the server.
///
/// A job is due when its pause and its lease are over. A lease that was never released (its
/// process died) expires by itself.
public struct RevocationTable {
  public struct Job: Sendable {
    public var id: Int64
    public var sealed: [UInt8]
    public var attempts: Int64
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  public func add(sealed: [UInt8]) throws(Failure) -> Int64 {
    try database.run("INSERT INTO revocation(sealed) VALUES (?)", .blob(sealed))
    return try database.lastInsertedRow()
  }

  /// The first job that is due. A pause longer than `longestMS`, or a lease longer than an hour, was
  /// stored in another boot, under another clock, and counts as over: a `global` logout that is sent
  /// late ends sessions that began since.
  public func due(now: SteadyTime, longestMS: Int64) throws(Failure) -> Job? {
    try database.first(
      """
      SELECT id, sealed, attempts FROM revocation
      WHERE (not_before_ms <= ?1 OR not_before_ms > ?1 + ?2)
        AND (lease_ms <= ?1 OR lease_ms > ?1 + 3600000) ORDER BY id LIMIT 1
      """, .int(now.ms), .int(longestMS)
    ) { (row) throws(Failure) in Job(id: row.count(0), sealed: row.blob(1), attempts: row.count(2))
    }
  }

  public func find(_ id: Int64) throws(Failure) -> Job? {
    try database.first("SELECT id, sealed, attempts FROM revocation WHERE id = ?", .int(id)) {
      (row) throws(Failure) in Job(id: row.count(0), sealed: row.blob(1), attempts: row.count(2))
    }
  }

  /// When the next job is due; nil: there is none.
  public func next() throws(Failure) -> SteadyTime? {
    try database.first("SELECT min(max(not_before_ms, lease_ms)) FROM revocation") {
      (row) throws(Failure) in row.int(ifPresent: 0).map { SteadyTime(ms: $0) }
    } ?? nil
  }

  public func count() throws(Failure) -> Int64 {
    try database.first("SELECT count(*) FROM revocation") {
      (row) throws(Failure) in row.int(0)
    } ?? 0
  }

  /// Keep other processes from the job until then.
  public func lease(_ id: Int64, until: SteadyTime) throws(Failure) {
    try database.run("UPDATE revocation SET lease_ms = ?2 WHERE id = ?1", .int(id), .int(until.ms))
  }

  /// Store the job's changed contents and end its lease.
  public func update(_ id: Int64, sealed: [UInt8]) throws(Failure) {
    try database.run(
      "UPDATE revocation SET sealed = ?2, lease_ms = 0 WHERE id = ?1", .int(id), .blob(sealed))
  }

  /// Count a failed attempt, back off until then, and end the lease.
  public func postpone(_ id: Int64, until: SteadyTime) throws(Failure) {
    try database.run(
      """
      UPDATE revocation SET attempts = attempts + 1, not_before_ms = ?2, lease_ms = 0
      WHERE id = ?1
      """, .int(id), .int(until.ms))
  }

  public func remove(_ id: Int64) throws(Failure) {
    try database.run("DELETE FROM revocation WHERE id = ?", .int(id))
  }
}
