public import Base

/// Single values by name.
public struct MetaTable {
  /// The names there are.
  public enum Name: String, Sendable {
    /// Proof that the device key is the one that sealed this file.
    case keyCheck = "key_check"
    /// Server time minus device time, in milliseconds.
    case clockOffset = "clock_offset_ms"
    /// The last event's number.
    case eventSequence = "event_seq"
    /// The last cohort's number.
    case cohort = "cohort"
    /// When the last drain was completed.
    case lastDrain = "last_drain_ms"
    /// The key store has not yet confirmed that the biometric key is erased.
    case eraseOwed = "erase_owed"
    /// The name of a damaged file whose contents are still to be carried over.
    case salvage = "salvage"
    /// There is a cache: a file that is missing was lost.
    case hasCache = "has_cache"
    /// Uploads begun, by any process: a figure read meanwhile may or may not count what they store.
    case uploads = "uploads"
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  public func int(_ name: Name) throws(Failure) -> Int64? {
    try database.first("SELECT value FROM meta WHERE name = ?", .text(name.rawValue)) {
      (row) throws(Failure) in row.int(0)
    }
  }

  public func blob(_ name: Name) throws(Failure) -> [UInt8]? {
    try database.first("SELECT value FROM meta WHERE name = ?", .text(name.rawValue)) {
      (row) throws(Failure) in row.blob(0)
    }
  }

  public func text(_ name: Name) throws(Failure) -> String? {
    try database.first("SELECT value FROM meta WHERE name = ?", .text(name.rawValue)) {
      (row) throws(Failure) in row.text(ifPresent: 0)
    } ?? nil
  }

  public func set(_ name: Name, _ value: Value) throws(Failure) {
    try database.run(
      "INSERT INTO meta(name, value) VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      .text(name.rawValue), value)
  }

  /// Raise a counter and return it.
  public func next(_ name: Name) throws(Failure) -> Int64 {
    let next = (try int(name) ?? 0) + 1
    try set(name, .int(next))
    return next
  }
}
