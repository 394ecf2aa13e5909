public import Base

/// What is cached of a set of rows or of the figures, how fresh it is, and how far it was read.
///
/// A set has an entry before it has rows, so that the sets of an organisation are found by their entries,
/// also those of a kind that the configuration does not name any more.
public struct DatasetTable {
  public enum Name: String, Sendable { case rows, summary }

  public final class Entry {
    /// When a pull last reached the end; nil: never.
    public var asOfMS: Int64?
    /// The last row that the pull of changes has read, sealed; nil: start from the beginning.
    public var cursor: [UInt8]?
    /// When a reconcile was last completed; nil: one is due.
    public var reconciledMS: Int64?
    /// The number of the current reconcile, or of the reading from the first row if that was later.
    public var round: Int64 = 0
    /// The last id that the current reconcile has read, sealed; nil: none is under way.
    public var reconciled: [UInt8]?
    /// Rows of the last pull that could not be used.
    public var skipped: Int64 = 0
    /// The code of the problem that ended the last pull.
    public var problem: String?
    /// The data itself, if it has no table of its own (the summary).
    public var sealed: [UInt8]?

    public init() {}

    /// A pull has stored a page, or found that there is none.
    public var wasRead: Bool { cursor != nil || asOfMS != nil }
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  public func read(_ name: Name, of set: [UInt8]) throws(Failure) -> Entry? {
    try database.first(
      """
      SELECT as_of_ms, cursor, reconciled_ms, round, reconciled, skipped, problem, sealed
      FROM dataset WHERE org = ?1 AND name = ?2
      """, .blob(set), .text(name.rawValue)
    ) { (row) throws(Failure) in
      let entry = Entry()
      entry.asOfMS = row.int(ifPresent: 0)
      entry.cursor = row.blob(ifPresent: 1)
      entry.reconciledMS = row.int(ifPresent: 2)
      entry.round = row.count(3)
      entry.reconciled = row.blob(ifPresent: 4)
      entry.skipped = row.count(5)
      entry.problem = row.text(ifPresent: 6)
      entry.sealed = row.blob(ifPresent: 7)
      return entry
    }
  }

  /// `place`: the organisation of the set; nil: the set is named as its organisation.
  public func write(
    _ name: Name, of set: [UInt8], in place: [UInt8]? = nil, _ entry: Entry
  ) throws(Failure) {
    try database.run(
      """
      INSERT OR REPLACE INTO dataset(org, name, as_of_ms, cursor, reconciled_ms, round, reconciled,
        skipped, problem, sealed, place)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
      """, .blob(set), .text(name.rawValue), Value(entry.asOfMS), Value(entry.cursor),
      Value(entry.reconciledMS), .int(entry.round), Value(entry.reconciled), .int(entry.skipped),
      Value(entry.problem), Value(entry.sealed), .blob(place ?? set))
  }

  /// The sets of an organisation.
  public func sets(in place: [UInt8]) throws(Failure) -> [[UInt8]] {
    try database.all("SELECT org FROM dataset WHERE place = ?1 AND name = 'rows'", .blob(place)) {
      (row) throws(Failure) in row.blob(0)
    }
  }

  /// Make the next pulls of an organisation reconcile from the beginning, and end those reconciles that are
  /// under way.
  public func expireReconciles(in place: [UInt8]) throws(Failure) {
    try database.run(
      """
      UPDATE dataset SET reconciled_ms = NULL, reconciled = NULL, round = round + 1 WHERE place = ?
      """, .blob(place))
  }

  public func removeAll(in place: [UInt8]) throws(Failure) -> Int {
    try database.run("DELETE FROM dataset WHERE place = ?", .blob(place))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM dataset") }
}
