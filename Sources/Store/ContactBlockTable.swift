public import Base

/// The texts by which contacts are found, sealed in blocks: a search opens a few hundred blocks instead
/// of all contacts.
///
/// A block belongs to the rows of one organisation whose numbers lie in its range (`ContactTable`).
/// Blocks are made from rows and can be made again. Every write of a block gives it another random
/// stamp, so a reader opens only the blocks that it does not have.
public struct ContactBlockTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Rows whose numbers fit into one block; a page of a pull fills two.
  public static var rows: Int64 { 250 }

  /// The block of a row.
  public static func block(of number: Int64) -> Int64 { number / rows }

  /// The blocks of an organisation.
  public func each(
    of org: [UInt8], _ body: (_ number: Int64, _ stamp: Int64) throws(Failure) -> Void
  ) throws(Failure) {
    try database.each("SELECT number, stamp FROM contact_block WHERE org = ?", [.blob(org)]) {
      (row) throws(Failure) in
      // A stamp may be any number.
      try body(row.count(0), row.integer(1) ?? 0)
      return true
    }
  }

  public func find(_ number: Int64, of org: [UInt8]) throws(Failure) -> [UInt8]? {
    try database.first(
      "SELECT sealed FROM contact_block WHERE org = ? AND number = ?", .blob(org), .int(number)
    ) { (row) throws(Failure) in row.blob(0) }
  }

  public func put(
    _ number: Int64, of org: [UInt8], stamp: Int64, sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      "INSERT OR REPLACE INTO contact_block(org, number, stamp, sealed) VALUES (?1, ?2, ?3, ?4)",
      .blob(org), .int(number), .int(stamp), .blob(sealed))
  }

  public func remove(_ number: Int64, of org: [UInt8]) throws(Failure) {
    try database.run(
      "DELETE FROM contact_block WHERE org = ? AND number = ?", .blob(org), .int(number))
  }

  public func removeAll(of org: [UInt8]) throws(Failure) -> Int {
    try database.run("DELETE FROM contact_block WHERE org = ?", .blob(org))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM contact_block") }
}
