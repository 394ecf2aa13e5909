public import Base

/// A run: from the first item that is sent until none can be sent. Its totals survive restarts.
public struct SyncRun: Sendable {
  public var started: SteadyTime
  public var sent: Int64
  public var parked: Int64
  /// The ids of the items that were sent, sealed; the first ones only.
  public var ids: [UInt8]?
}

/// At most one run per owner.
public struct SyncRunTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  public func find(of owner: [UInt8]) throws(Failure) -> SyncRun? {
    try database.first(
      "SELECT started_ms, sent, parked, ids FROM sync_run WHERE owner = ?", .blob(owner)
    ) { (row) throws(Failure) in
      SyncRun(
        started: SteadyTime(ms: row.int(0)), sent: row.count(1), parked: row.count(2),
        ids: row.blob(ifPresent: 3))
    }
  }

  /// Start a run unless there is one.
  public func start(of owner: [UInt8], now: SteadyTime) throws(Failure) {
    if try find(of: owner) == nil { try count(of: owner, sent: 0, parked: 0, now: now) }
  }

  /// Add to the run's totals; without a run, start one.
  public func count(
    of owner: [UInt8], sent: Int64, parked: Int64, now: SteadyTime
  ) throws(Failure) {
    try database.run(
      """
      INSERT INTO sync_run(owner, started_ms, sent, parked) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT(owner) DO UPDATE SET sent = sent + ?3, parked = parked + ?4
      """, .blob(owner), .int(now.ms), .int(sent), .int(parked))
  }

  public func keep(ids: [UInt8], of owner: [UInt8]) throws(Failure) {
    try database.run("UPDATE sync_run SET ids = ?2 WHERE owner = ?1", .blob(owner), .blob(ids))
  }

  public func end(of owner: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM sync_run WHERE owner = ?", .blob(owner))
  }
}
