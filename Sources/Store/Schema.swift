public import Base
import CSQLite
import Vault

/// The tables of a file, as the statements that make them, and their version. `PRAGMA user_version` holds the
/// version, and `PRAGMA application_id` holds it again: a flipped bit in one of them is no other version.
///
/// SQLite stores the texts of the statements. Versions 3.33 to 3.54 store the same bytes, so their digest is
/// compared first. Should a version differ, in the quotes around names, in white space or in the order of the
/// entries, then the entries are compared with those that this version makes of the same statements. A correct
/// file is never taken for a damaged one.
public struct Schema {
  let statements: StaticString
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

  private func make(in database: Database) throws(Failure) {
    try database.transaction { () throws(Failure) in
      let found = try Schema.version(of: database)
      // Another process has made them meanwhile.
      if found == version { return }
      if try Schema.secondVersion(of: database) == version {
        return try database.execute("PRAGMA user_version=\(version)")
      }
      guard found < version else {
        throw Failure(.storageNewer, "written by a newer version of this library; update it")
      }
      try database.execute(statements.description)
      try database.execute("PRAGMA user_version=\(version); PRAGMA application_id=\(version)")
    }
  }

  /// Whether a file has these tables, or those of a newer library, which has opened the file meanwhile.
  func fits(_ database: Database) throws(Failure) -> Bool {
    if try Schema.version(of: database) != version { return true }
    if try Schema.digest(of: database) == digest.description { return true }
    // Another version of SQLite may have written the texts in another way.
    return try Schema.plain(of: database) == Schema.plain(madeBy: statements)
  }

  private static func version(of database: Database) throws(Failure) -> Int64 {
    try database.first("PRAGMA user_version") { (row) throws(Failure) in row.int(0) } ?? 0
  }

  private static func secondVersion(of database: Database) throws(Failure) -> Int64 {
    try database.first("PRAGMA application_id") { (row) throws(Failure) in row.int(0) } ?? 0
  }

  // MARK: The stored texts

  private static var entries: StaticCString {
    """
    SELECT type || ' ' || name || ' ' || tbl_name || ' ' || ifnull(sql, '') FROM sqlite_master
    ORDER BY type, name
    """
  }

  /// BLAKE2b over all entries, base64url. Each start takes it: SHA-256, and SQL that joins the entries,
  /// take three times as long.
  static func digest(of database: Database) throws(Failure) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(expectedSize)
    try database.each("SELECT type, name, tbl_name, sql FROM sqlite_master", []) {
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
  private static var expectedSize: Int { 4096 }

  /// The entries of a file, without what versions of SQLite may write differently.
  static func plain(of database: Database) throws(Failure) -> [UInt8] {
    var found: [UInt8] = []
    try database.each(entries, []) { (row) throws(Failure) in
      found += plain(row.blob(0))
      return true
    }
    return found
  }

  /// The same of a database in memory.
  static func plain(madeBy statements: StaticString) throws(Failure) -> [UInt8] {
    var opened: OpaquePointer?
    var result = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nil)
    defer { sqlite3_close_v2(opened) }
    if result == SQLITE_OK {
      result = sqlite3_exec(opened, StaticCString(stringLiteral: statements).start, nil, nil, nil)
    }
    var statement: OpaquePointer?
    if result == SQLITE_OK {
      result = sqlite3_prepare_v2(opened, entries.start, -1, &statement, nil)
    }
    defer { sqlite3_finalize(statement) }
    var found: [UInt8] = []
    if let statement {
      repeat {
        result = sqlite3_step(statement)
        if result == SQLITE_ROW { found += plain(Row.blob(statement, 0)) }
      } while result == SQLITE_ROW
    }
    guard result == SQLITE_DONE else {
      throw Database.failure(result, "the schema could not be made for comparison")
    }
    return found
  }

  /// An entry and a line's end, without the quotes around names of small letters, and without white space
  /// where it has no meaning. The names of this library are of small letters, and SQL's words of capitals:
  /// a quoted word of SQL stays another text than the word.
  static func plain(_ text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var at = 0
    while at < text.count {
      let byte = text[at]
      if byte == quote, let end = endOfName(text, at + 1) {
        result += text[at + 1..<end]
        at = end + 1
        continue
      }
      at += 1
      if isSpace(byte) {
        if let last = result.last, !isSpace(last), !isPunctuation(last) { result.append(space) }
      } else {
        if isPunctuation(byte), result.last == space { result.removeLast() }
        result.append(byte)
      }
    }
    result.append(newline)
    return result
  }

  /// Where the quote after a name of small letters is.
  private static func endOfName(_ text: [UInt8], _ start: Int) -> Int? {
    var at = start
    while at < text.count, isNamePart(text[at]) { at += 1 }
    return at > start && at < text.count && text[at] == quote ? at : nil
  }

  private static var semicolon: UInt8 { 0x3B }
  private static var quote: UInt8 { 0x22 }
  private static var space: UInt8 { 0x20 }
  private static var newline: UInt8 { 0x0A }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == space || byte == newline || byte == 9
  }

  private static func isPunctuation(_ byte: UInt8) -> Bool {
    byte == 0x28 || byte == 0x29 || byte == 0x2C
  }

  private static func isNamePart(_ byte: UInt8) -> Bool {
    byte >= 0x61 && byte <= 0x7A || byte == 0x5F || byte >= 0x30 && byte <= 0x39
  }
}
