public import Base

/// Sealed sums over the items of a block, so that no sum needs all items.
///
/// A block is a range of sequence numbers, whose size depends on its level: 64, 4096 or 262,144. Above
/// them a root sums up all items up to a number. A change of what an item counts for removes the sums with
/// this item (the triggers of `Schema.main`), and a reader makes them again. New items have higher numbers
/// than all before, so adding one changes no sum that is kept.
public struct QueueBlockTable {
  /// The number of levels below the root.
  public static var levels: Int64 { 3 }

  /// The first number of the block that has this sequence number, on a level.
  public static func block(of sequence: Int64, _ level: Int64) -> Int64 {
    sequence >> (6 * (level + 1))
  }

  /// The sequence numbers of a block.
  public static func range(_ level: Int64, _ block: Int64) -> ClosedRange<Int64> {
    let bits = 6 * (level + 1)
    return block << bits...((block + 1) << bits) - 1
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  @inline(never)
  public func read(
    _ level: Int64, _ block: Int64, of owner: [UInt8], org: [UInt8]
  ) throws(Failure) -> [UInt8]? {
    try database.first(
      """
      SELECT sealed FROM queue_block WHERE level = ?1 AND block = ?2 AND owner = ?3 AND org = ?4
      """, .int(level), .int(block), .blob(owner), .blob(org)
    ) { (row) throws(Failure) in row.blob(0) }
  }

  @inline(never)
  public func write(
    _ level: Int64, _ block: Int64, of owner: [UInt8], org: [UInt8], _ sealed: [UInt8]
  ) throws(Failure) {
    try database.run(
      "INSERT OR REPLACE INTO queue_block(level, block, owner, org, sealed) VALUES (?, ?, ?, ?, ?)",
      .int(level), .int(block), .blob(owner), .blob(org), .blob(sealed))
  }
}

extension QueueTable {
  /// The first item's number from this one on, whoever owns it.
  @inline(never)
  public func firstNumber(from sequence: Int64) throws(Failure) -> Int64? {
    try database.first(
      "SELECT seq FROM queue WHERE seq >= ? ORDER BY seq LIMIT 1", .int(sequence)
    ) { (row) throws(Failure) in row.count(0) }
  }

  /// An owner's items with these numbers.
  @inline(never)
  public func rows(
    of owner: [UInt8], _ range: ClosedRange<Int64>
  ) throws(Failure) -> [QueueRow] {
    try database.all(
      "SELECT * FROM queue NOT INDEXED WHERE seq BETWEEN ?2 AND ?3 AND owner = ?1 ORDER BY seq",
      .blob(owner), .int(range.lowerBound), .int(range.upperBound)
    ) { (row) throws(Failure) in QueueRow(row) }
  }
}
