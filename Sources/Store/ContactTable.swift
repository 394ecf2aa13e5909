public import Base

/// Cached rows of the server, sealed: the contacts of organisations, and the user's own rows of each kind. `org`
/// is the tag of such a set.
///
/// Rows are numbered in the order in which they arrived and keep their number, so a pull writes at the
/// end of the table, and `ContactBlockTable` finds the block that a contact belongs to by its number.
///
/// Every row carries the number of the reconcile round in which the server last listed it. When a
/// round is complete, the rows of other rounds no longer exist on the server.
public struct ContactTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// A stored row.
  public struct Place {
    public let number: Int64
    public let round: Int64
    /// It has the version that was asked for.
    public let isCurrent: Bool
    /// It has a later one. `updated_at` in the server's form is ordered as text.
    public let isNewer: Bool
  }

  /// The row with this tag; `version`: the server's `updated_at`, nil for any.
  public func place(
    of row: [UInt8], in org: [UInt8], version: String?
  ) throws(Failure) -> Place? {
    try database.first(
      """
      SELECT number, round, version = ifnull(?3, version), ifnull(version > ?3, 0) FROM contact
      WHERE org = ?1 AND row = ?2
      """, .blob(org), .blob(row), Value(version)
    ) { (row) throws(Failure) in
      Place(
        number: row.count(0), round: row.count(1), isCurrent: row.count(2) != 0,
        isNewer: row.count(3) != 0)
    }
  }

  /// Own rows are numbered from here on: those that arrive between contacts leave no gaps in the blocks.
  static var firstListed: Int64 { 1 << 40 }

  /// The number for the next new row. `isListed`: it has a time by which it is listed.
  public func nextNumber(isListed: Bool = false) throws(Failure) -> Int64 {
    let first = isListed ? ContactTable.firstListed : 0
    return try database.first(
      "SELECT ifnull(max(number) + 1, ?1) FROM contact WHERE number >= ?1 AND number < ?2",
      .int(first), .int(first + ContactTable.firstListed)
    ) { (row) throws(Failure) in row.count(0) } ?? first
  }

  /// Store a new row as the server has it. `version` is its `updated_at`, `round` the number of the
  /// set's current reconcile, `listedMS` the time by which it is listed.
  public func add(
    number: Int64, row: [UInt8], org: [UInt8], version: String, round: Int64,
    listedMS: Int64? = nil, sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      """
      INSERT INTO contact(number, row, org, version, round, listed_ms, sealed)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
      """, .int(number), .blob(row), .blob(org), .text(version), .int(round), Value(listedMS),
      .blob(sealed))
  }

  /// The same for a row that is stored.
  public func replace(
    number: Int64, version: String, round: Int64, listedMS: Int64? = nil, sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      """
      UPDATE contact SET version = ?2, round = ?3, listed_ms = ?4, sealed = ?5 WHERE number = ?1
      """, .int(number), .text(version), .int(round), Value(listedMS), .blob(sealed))
  }

  /// The server lists this row in this version (nil: in any): move it to the current round. False
  /// when the cache does not have that version.
  public func confirm(
    row: [UInt8], in org: [UInt8], version: String?, round: Int64
  ) throws(Failure) -> Bool {
    guard let place = try place(of: row, in: org, version: version), place.isCurrent else {
      return false
    }
    try confirm(place, round: round)
    return true
  }

  public func confirm(_ place: Place, round: Int64) throws(Failure) {
    guard place.round != round else { return }
    try database.run(
      "UPDATE contact SET round = ?2 WHERE number = ?1", .int(place.number), .int(round))
  }

  /// Keep of an own row that was deleted in this version, or the later one that is stored, only its
  /// place: just above that version, so that no pull brings it back from a replica that lags behind.
  /// The next reconcile does not meet it, or reads it anew if it is there after all.
  public func hide(number: Int64, version: String, round: Int64) throws(Failure) {
    try database.run(
      """
      UPDATE contact SET version = rtrim(max(version, ?2), '~') || '~', round = ?3,
        listed_ms = NULL, sealed = x'' WHERE number = ?1
      """, .int(number), .text(version), .int(round))
  }

  public func remove(number: Int64) throws(Failure) {
    try database.run("DELETE FROM contact WHERE number = ?", .int(number))
  }

  /// Remove the rows that a complete reconcile did not list; how many. `body` is called for each.
  public func removeUnmet(
    of org: [UInt8], round: Int64, _ body: (_ number: Int64, _ row: [UInt8]) -> Void
  ) throws(Failure) -> Int {
    try database.each(
      "SELECT number, row FROM contact WHERE org = ?1 AND round <> ?2", [.blob(org), .int(round)]
    ) { (row) throws(Failure) in
      body(row.count(0), row.blob(1))
      return true
    }
    return try database.run(
      "DELETE FROM contact WHERE org = ?1 AND round <> ?2", .blob(org), .int(round))
  }

  /// Whether there are rows that a reading from the first row, or a reconcile, did not list.
  public func hasUnmet(of org: [UInt8], round: Int64) throws(Failure) -> Bool {
    try database.exists(
      "SELECT 1 FROM contact WHERE org = ?1 AND round <> ?2", .blob(org), .int(round))
  }

  public func find(row: [UInt8], in org: [UInt8]) throws(Failure) -> [UInt8]? {
    try database.first(
      "SELECT sealed FROM contact WHERE org = ?1 AND row = ?2", .blob(org), .blob(row)
    ) { (row) throws(Failure) in row.blob(0) }
  }

  public func count(of org: [UInt8]) throws(Failure) -> Int {
    try database.first("SELECT count(*) FROM contact WHERE org = ?", .blob(org)) {
      (row) throws(Failure) in Int(row.count(0))
    } ?? 0
  }

  /// All rows of a set by their numbers. The index would have to be sorted.
  public func each(
    of org: [UInt8],
    _ body: (_ number: Int64, _ row: [UInt8], _ sealed: [UInt8]) throws(Failure) -> Void
  ) throws(Failure) {
    try database.each(
      "SELECT number, row, sealed FROM contact NOT INDEXED WHERE org = ? ORDER BY number",
      [.blob(org)]
    ) { (row) throws(Failure) in
      try body(row.count(0), row.blob(1), row.blob(2))
      return true
    }
  }

  // MARK: Own rows

  /// The newest rows of a set before a place, from a time on.
  public func listed(
    of org: [UInt8], before place: ListPlace, fromMS: Int64, limit: Int
  ) throws(Failure) -> [(place: ListPlace, sealed: [UInt8])] {
    try database.all(
      """
      SELECT listed_ms, row, sealed FROM contact INDEXED BY contact_listed
      WHERE org = ?1 AND listed_ms >= ?2 AND (listed_ms, row) < (?3, ?4)
      ORDER BY listed_ms DESC, row DESC LIMIT ?5
      """, .blob(org), .int(fromMS), .int(place.ms), .blob(place.row), .int(limit)
    ) { (row) throws(Failure) in
      (ListPlace(ms: row.int(0), row: row.blob(1)), row.blob(2))
    }
  }

  public func hasRows(of org: [UInt8]) throws(Failure) -> Bool {
    try database.first(
      "SELECT 1 FROM contact WHERE org = ? AND listed_ms IS NOT NULL LIMIT 1", .blob(org)
    ) { (_) throws(Failure) in true } ?? false
  }

  /// Remove the rows of a set that are older; how many.
  public func removeListed(of org: [UInt8], before ms: Int64) throws(Failure) -> Int {
    try database.run(
      "DELETE FROM contact WHERE org = ?1 AND listed_ms < ?2", .blob(org), .int(ms))
  }

  // MARK: Removing all

  public func removeAll(of org: [UInt8]) throws(Failure) -> Int {
    try database.run("DELETE FROM contact WHERE org = ?", .blob(org))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM contact") }
}

/// Where a row is in a list: newest first, and by the tag among those of one time.
public struct ListPlace: Equatable, Sendable {
  public let ms: Int64
  public let row: [UInt8]

  public init(ms: Int64, row: [UInt8]) {
    self.ms = ms
    self.row = row
  }

  /// Whether this is listed before the other.
  public func precedes(_ other: ListPlace) -> Bool {
    ms != other.ms ? ms > other.ms : other.row.lexicographicallyPrecedes(row)
  }
}
