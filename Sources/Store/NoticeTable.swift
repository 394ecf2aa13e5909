public import Base

/// What must reach a user, sealed, until the host has handled it.
public struct NoticeTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// `owner` nil: for any user of the device.
  public func add(_ number: Int64, owner: [UInt8]?, sealed: [UInt8]) throws(Failure) {
    try database.run(
      "INSERT INTO notice(number, owner, sealed) VALUES (?, ?, ?)", .int(number), Value(owner),
      .blob(sealed))
  }

  /// The oldest notice for this user, and for any user; not the one with the number `but`.
  public func first(
    for owner: [UInt8]?, but given: Int64? = nil
  ) throws(Failure) -> (Int64, [UInt8])? {
    try database.first(
      """
      SELECT number, sealed FROM notice WHERE (owner IS NULL OR owner = ?1) AND number IS NOT ?2
      ORDER BY number LIMIT 1
      """, Value(owner), Value(given)
    ) { (row) throws(Failure) in (row.count(0), row.blob(1)) }
  }

  public func remove(_ number: Int64) throws(Failure) {
    try database.run("DELETE FROM notice WHERE number = ?", .int(number))
  }
}
