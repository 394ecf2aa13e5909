public import Base

/// Single values by name.
public struct MetaTable {
  /// The names in use.
  public struct Name {
    public let text: StaticCString

    /// An empty object, sealed with the device key, twice: it opens with the key that sealed this file.
    public static var keyCheck: Name { Name(text: "key_check") }
    /// How many times files before this one lost their device key. It tells the name of this file's.
    public static var deviceKey: Name { Name(text: "device_key") }
    /// Set when a host's key store had the key that sealed this file, and not key files.
    public static var hasHostKeys: Name { Name(text: "has_host_keys") }
    /// The project whose data this is (`MetaTable.project`).
    public static var project: Name { Name(text: "project") }
    /// Server time minus device time, in milliseconds.
    public static var clockOffset: Name { Name(text: "clock_offset_ms") }
    /// The boot in which steady time was last stored, as a number (`Holder.hash`).
    public static var steadyBoot: Name { Name(text: "steady_boot") }
    /// In that boot, steady time minus the monotonic clock.
    public static var steadyOffset: Name { Name(text: "steady_offset_ms") }
    /// The last number that was taken for a notice.
    public static var notice: Name { Name(text: "notice") }
    /// The last retry group's number.
    public static var retryGroup: Name { Name(text: "retry_group") }
    /// When the last sync run was completed.
    public static var lastSyncRun: Name { Name(text: "last_sync_run_ms") }
    /// The keys that the key store still has to erase, as bits: 1 `biometric`, 2 `session`.
    public static var owedKeyErasures: Name { Name(text: "owed_key_erasures") }
    /// The name of a damaged file whose rows are not yet carried over.
    public static var salvage: Name { Name(text: "salvage") }
    /// The files that were set aside without their device key, as JSON (`KeylessList`).
    public static var keyless: Name { Name(text: "keyless") }
    /// Set when the cache was first made: a cache file that is missing now was lost.
    public static var hasCache: Name { Name(text: "has_cache") }
    /// The organisations whose caches must be erased and could not be: their tags in the cache.
    public static var owedCacheErasures: Name { Name(text: "owed_cache_erasures") }
    /// The number of uploads that any process has begun. If it changes while a summary is fetched,
    /// the figures may or may not count the uploaded items.
    public static var uploads: Name { Name(text: "uploads") }
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  public func int(_ name: Name) throws(Failure) -> Int64? {
    guard let cache = database.currentReadCache else { return try readAnew(name) }
    return try cache.number(name.text) { () throws(Failure) in try readAnew(name) }
  }

  private func readAnew(_ name: Name) throws(Failure) -> Int64? {
    try database.first("SELECT value FROM meta WHERE name = ?", .literal(name.text)) {
      (row) throws(Failure) in row.int(ifPresent: 0)
    } ?? nil
  }

  /// The same of a value that may be any number of 64 bits.
  public func word(_ name: Name) throws(Failure) -> Int64? {
    try database.first("SELECT value FROM meta WHERE name = ?", .literal(name.text)) {
      (row) throws(Failure) in row.integer(0)
    } ?? nil
  }

  public func blob(_ name: Name) throws(Failure) -> [UInt8]? {
    try database.first("SELECT value FROM meta WHERE name = ?", .literal(name.text)) {
      (row) throws(Failure) in row.blob(0)
    }
  }

  public func text(_ name: Name) throws(Failure) -> String? {
    try database.first("SELECT value FROM meta WHERE name = ?", .literal(name.text)) {
      (row) throws(Failure) in row.text(ifPresent: 0)
    } ?? nil
  }

  /// The project whose data the file holds; nil: no handle has said so, or the value is damaged.
  public func project() throws(Failure) -> String? {
    try blob(.project).flatMap { MetaTable.project($0) }
  }

  public func setProject(_ project: String) throws(Failure) {
    try set(.project, .blob([UInt8](bigEndian: Holder.hash(project)) + Array(project.utf8)))
  }

  /// The value holds a checksum, because a flipped bit must not turn a project into another one: then no
  /// handle could open the folder.
  static func project(_ value: [UInt8]) -> String? {
    let project = String(decoding: value.dropFirst(8), as: UTF8.self)
    return value.starts(with: [UInt8](bigEndian: Holder.hash(project))) ? project : nil
  }

  public func set(_ name: Name, _ value: Value) throws(Failure) {
    database.readCache = nil
    try database.run(
      """
      INSERT INTO meta(name, value) VALUES (?, ?)
      ON CONFLICT(name) DO UPDATE SET value = excluded.value
      """, .literal(name.text), value)
  }

  /// Take the next `count` numbers above a counter and above `least`; returns the first one. One
  /// transaction reads and writes the counter, because other handles raise it, too.
  public func next(
    _ name: Name, above least: Int64 = 0, count: Int64 = 1
  ) throws(Failure) -> Int64 {
    try database.transaction { () throws(Failure) in
      let next = max(try int(name) ?? 0, least) + 1
      let last = next + count - 1
      guard Row.counts.contains(last) else { throw database.damage("a counter is damaged") }
      try set(name, .int(last))
      return next
    }
  }
}
