public import Base

/// A cached row of the server's, sealed.
public struct ContactTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  public func put(row: [UInt8], org: [UInt8], sealed: [UInt8]) throws(Failure) {
    try database.run(
      """
      INSERT INTO contact(row, org, sealed) VALUES (?1, ?2, ?3)
      ON CONFLICT(row) DO UPDATE SET sealed = ?3
      """, .blob(row), .blob(org), .blob(sealed))
  }

  public func remove(row: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM contact WHERE row = ?", .blob(row))
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

  public func removeAll(of org: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM contact WHERE org = ?", .blob(org))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM contact") }
}

/// How far each source of an organisation was read, and when.
public struct SourceTable {
  public enum Name: String, Sendable { case contacts, summary }

  public struct Entry: Sendable {
    public var cursor: [UInt8]?
    public var asOfMS: Int64
    public var reconciledMS: Int64
    public var sealed: [UInt8]?

    public init(
      cursor: [UInt8]? = nil, asOfMS: Int64, reconciledMS: Int64 = 0, sealed: [UInt8]? = nil
    ) {
      self.cursor = cursor
      self.asOfMS = asOfMS
      self.reconciledMS = reconciledMS
      self.sealed = sealed
    }
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  public func read(_ name: Name, of org: [UInt8]) throws(Failure) -> Entry? {
    try database.first(
      "SELECT cursor, as_of_ms, reconciled_ms, sealed FROM source WHERE org = ?1 AND name = ?2",
      .blob(org), .text(name.rawValue)
    ) { (row) throws(Failure) in
      Entry(
        cursor: row.blob(ifPresent: 0), asOfMS: row.int(1), reconciledMS: row.int(2),
        sealed: row.blob(ifPresent: 3))
    }
  }

  public func write(_ name: Name, of org: [UInt8], _ entry: Entry) throws(Failure) {
    try database.run(
      """
      INSERT INTO source(org, name, cursor, as_of_ms, reconciled_ms, sealed)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6)
      ON CONFLICT(org, name) DO UPDATE SET cursor = ?3, as_of_ms = ?4, reconciled_ms = ?5,
        sealed = ?6
      """, .blob(org), .text(name.rawValue), Value(entry.cursor), .int(entry.asOfMS),
      .int(entry.reconciledMS), Value(entry.sealed))
  }

  public func removeAll(of org: [UInt8]) throws(Failure) {
    try database.run("DELETE FROM source WHERE org = ?", .blob(org))
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM source") }
}
