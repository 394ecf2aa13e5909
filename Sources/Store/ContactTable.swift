public import Base

/// Cached rows of the server's contacts, sealed.
///
/// Rows are numbered in the order in which they arrived and keep their number, so a pull writes at the
/// end of the table, and `ContactBlockTable` finds the block that a row belongs to by its number.
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
  }

  /// The row with this tag; `version`: the server's `updated_at`, nil for any.
  public func place(of row: [UInt8], version: String?) throws(Failure) -> Place? {
    try database.first(
      "SELECT number, round, version = ifnull(?2, version) FROM contact WHERE row = ?1",
      .blob(row), Value(version)
    ) { (row) throws(Failure) in
      Place(number: row.count(0), round: row.count(1), isCurrent: row.count(2) != 0)
    }
  }

  /// The number for the next new row.
  public func nextNumber() throws(Failure) -> Int64 {
    try database.first("SELECT ifnull(max(number) + 1, 0) FROM contact") {
      (row) throws(Failure) in row.count(0)
    } ?? 0
  }

  /// Store a new row as the server has it. `version` is its `updated_at`, `round` the number of the
  /// organisation's current reconcile.
  public func add(
    number: Int64, row: [UInt8], org: [UInt8], version: String, round: Int64, sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      """
      INSERT INTO contact(number, row, org, version, round, sealed)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      """, .int(number), .blob(row), .blob(org), .text(version), .int(round), .blob(sealed))
  }

  /// The same for a row that is stored.
  public func replace(
    number: Int64, version: String, round: Int64, sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      "UPDATE contact SET version = ?2, round = ?3, sealed = ?4 WHERE number = ?1", .int(number),
      .text(version), .int(round), .blob(sealed))
  }

  /// The server lists this row in this version (nil: in any): move it to the current round. False
  /// when the cache does not have that version.
  public func confirm(row: [UInt8], version: String?, round: Int64) throws(Failure) -> Bool {
    guard let place = try place(of: row, version: version), place.isCurrent else { return false }
    try confirm(place, round: round)
    return true
  }

  public func confirm(_ place: Place, round: Int64) throws(Failure) {
    guard place.round != round else { return }
    try database.run(
      "UPDATE contact SET round = ?2 WHERE number = ?1", .int(place.number), .int(round))
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

  public func find(row: [UInt8]) throws(Failure) -> [UInt8]? {
    try database.first("SELECT sealed FROM contact WHERE row = ?", .blob(row)) {
      (row) throws(Failure) in row.blob(0)
    }
  }

  public func count(of org: [UInt8]) throws(Failure) -> Int {
    try database.first("SELECT count(*) FROM contact WHERE org = ?", .blob(org)) {
      (row) throws(Failure) in Int(row.count(0))
    } ?? 0
  }

  /// All rows of an organisation by their numbers. The index would have to be sorted.
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

  public func removeAll(of org: [UInt8]) throws(Failure) -> Int {
    try database.run("DELETE FROM contact WHERE org = ?", .blob(org))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM contact") }
}
