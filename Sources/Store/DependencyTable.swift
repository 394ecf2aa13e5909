public import Base

/// Which queued item waits for which other one (its parent), by their tags.
public struct DependencyTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Make `item` depend on `parent`. False when `parent` itself depends on `item`, directly or
  /// through others: then neither could ever be sent.
  @discardableResult
  public func add(_ item: [UInt8], on parent: [UInt8]) throws(Failure) -> Bool {
    try database.run(
      """
      WITH RECURSIVE above(item) AS (VALUES(?2)
        UNION SELECT parent FROM dependency JOIN above USING (item))
      INSERT OR IGNORE INTO dependency(item, parent) SELECT ?1, ?2
      WHERE NOT EXISTS (SELECT 1 FROM dependency WHERE parent = ?1)
        AND ?1 <> ?2 OR NOT EXISTS (SELECT 1 FROM above WHERE item = ?1)
      """, .blob(item), .blob(parent))
    return try database.exists(
      "SELECT 1 FROM dependency WHERE item = ?1 AND parent = ?2", .blob(item), .blob(parent))
  }

  public func isEmpty() throws(Failure) -> Bool {
    try !database.exists("SELECT 1 FROM dependency")
  }

  /// Those of the owner's items between two numbers that depend, directly or through others, on an item
  /// that is parked, sorted by number. One walk from the parked ones down: a walk up from each would go through a
  /// chain once for each of its items.
  public func waitingForParked(
    of owner: [UInt8], in range: ClosedRange<Int64>
  ) throws(Failure) -> [Int64] {
    try database.all(
      """
      WITH RECURSIVE below(item) AS (SELECT item FROM queue WHERE owner = ?1 AND state = 3
        UNION SELECT dependency.item FROM dependency JOIN below ON parent = below.item)
      SELECT seq FROM below JOIN queue USING (item)
      WHERE seq BETWEEN ?2 AND ?3 AND state <> 3 ORDER BY seq
      """, .blob(owner), .int(range.lowerBound), .int(range.upperBound)
    ) { (row) throws(Failure) in row.int(0) }
  }

  /// The items that depend directly on `parent`.
  public func children(of parent: [UInt8]) throws(Failure) -> [[UInt8]] {
    try database.all("SELECT item FROM dependency WHERE parent = ?", .blob(parent)) {
      (row) throws(Failure) in row.blob(0)
    }
  }

  /// `item` depends on nothing any more.
  public func removeParents(of item: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM dependency WHERE item = ?", .blob(item))
  }

  /// Nothing depends on `parent` any more.
  public func removeChildren(of parent: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM dependency WHERE parent = ?", .blob(parent))
  }
}
