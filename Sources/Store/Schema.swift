public import Base
import Vault

/// The tables of a file, as the statements that make them, and their version. `PRAGMA user_version` holds the
/// version, and `PRAGMA application_id` holds it again: a flipped bit in one of them is no other version.
///
/// SQLite stores the text of a CREATE statement as it is, in every version; only an ALTER edits it, and there is
/// none. So the digest of the stored texts tells whether a file has exactly these tables.
public struct Schema {
  let statements: StaticString
  /// What each connection that writes does beside its statements. The file is not trusted: triggers
  /// in it do not run (`csqlite_distrust`), and are damage.
  let triggers: StaticCString
  let version: Int64
  /// What `digest(of:)` finds in a file with these tables.
  let digest: StaticString

  /// Make the tables in a new file. A file of a newer library is refused (`storage.newer_version`). A file
  /// whose tables are not exactly these, for example with a trigger more, is damaged.
  public func apply(to database: Database) throws(Failure) {
    let before = try Schema.version(of: database)
    // It was opened for writing, so only its header says so: a flipped bit of the format's version.
    guard database.isWritable else { throw database.damage("the file's header forbids writing") }
    if before != version { try make(in: database) }
    database.schema = self
    try database.checkSchema()
  }

  public static var isNewer: Failure {
    Failure(.storageNewer, "written by a newer version of this library; update it")
  }

  /// Whether a newer library wrote the file, in both places that say so.
  public func isOlder(than database: Database) throws(Failure) -> Bool {
    let found = try Schema.version(of: database)
    if found <= version { return false }
    return try Schema.secondVersion(of: database) != version
  }

  private func make(in database: Database) throws(Failure) {
    try database.transaction { () throws(Failure) in
      let found = try Schema.version(of: database)
      // Another process has made them meanwhile.
      if found == version { return }
      if try Schema.secondVersion(of: database) == version {
        return try database.execute("PRAGMA user_version=\(version)")
      }
      if found > version { throw Schema.isNewer }
      try database.execute(statements.description)
      try database.execute("PRAGMA user_version=\(version); PRAGMA application_id=\(version)")
    }
  }

  /// Whether a file has these tables, or those of a newer library, which has opened the file meanwhile.
  func fits(_ database: Database) throws(Failure) -> Bool {
    if try Schema.version(of: database) != version { return true }
    return try Schema.digest(of: database) == digest.description
  }

  private static func version(of database: Database) throws(Failure) -> Int64 {
    try database.first("PRAGMA user_version") { (row) throws(Failure) in row.int(0) } ?? 0
  }

  private static func secondVersion(of database: Database) throws(Failure) -> Int64 {
    try database.first("PRAGMA application_id") { (row) throws(Failure) in row.int(0) } ?? 0
  }

  // MARK: The stored texts

  /// BLAKE2b over all entries, base64url, by their names: VACUUM stores them in another order. Each start takes
  /// it: SHA-256, and SQL that joins the entries, take three times as long.
  static func digest(of database: Database) throws(Failure) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(expectedSize)
    try database.each("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name", []) {
      (row) throws(Failure) in
      if !text.isEmpty { text.append(semicolon) }
      for column in Int32(0)...3 {
        if column > 0 { text.append(space) }
        row.append(column, to: &text)
      }
      return true
    }
    return Digest.base64URL(text.withUnsafeBytes { Digest.blake2b($0) })
  }

  /// More than the entries have together.
  private static var expectedSize: Int { 6144 }

  private static var semicolon: UInt8 { 0x3B }
  private static var space: UInt8 { 0x20 }
}
