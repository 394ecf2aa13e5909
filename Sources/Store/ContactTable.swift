public import Base

/// Cached rows of the server's contacts, sealed.
///
/// Every row carries the number of the reconcile round in which the server last listed it. When a
/// round is complete, the rows of other rounds no longer exist on the server.
public struct ContactTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Store a row as the server has it. `version` is its `updated_at`, `round` the number of the
  /// organisation's current reconcile.
  public func put(
    row: [UInt8], org: [UInt8], version: String, round: Int64, sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      """
      INSERT INTO contact(row, org, version, round, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT(row) DO UPDATE SET version = ?3, round = ?4, sealed = ?5
      """, .blob(row), .blob(org), .text(version), .int(round), .blob(sealed))
  }

  /// The server lists this row in this version (nil: in any): move it to the current round. False
  /// when the cache does not have that version.
  public func confirm(row: [UInt8], version: String?, round: Int64) throws(Failure) -> Bool {
    try database.run(
      "UPDATE contact SET round = ?3 WHERE row = ?1 AND version = ifnull(?2, version)", .blob(row),
      Value(version), .int(round)) > 0
  }

  public func remove(row: [UInt8]) throws(Failure) -> Bool {
    try database.run("DELETE FROM contact WHERE row = ?", .blob(row)) > 0
  }

  /// Remove the rows that a complete reconcile did not list; how many.
  public func removeUnmet(of org: [UInt8], round: Int64) throws(Failure) -> Int {
    try database.run(
      "DELETE FROM contact WHERE org = ?1 AND round <> ?2", .blob(org), .int(round))
  }

  public func find(row: [UInt8]) throws(Failure) -> [UInt8]? {
    try database.first("SELECT sealed FROM contact WHERE row = ?", .blob(row)) {
      (row) throws(Failure) in row.blob(0)
    }
  }

  public func each(
    of org: [UInt8], _ body: (_ row: [UInt8], _ sealed: [UInt8]) throws(Failure) -> Void
  ) throws(Failure) {
    try database.each("SELECT row, sealed FROM contact WHERE org = ?", [.blob(org)]) {
      (row) throws(Failure) in
      try body(row.blob(0), row.blob(1))
      return true
    }
  }

  public func removeAll(of org: [UInt8]) throws(Failure) -> Int {
    try database.run("DELETE FROM contact WHERE org = ?", .blob(org))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM contact") }
}
