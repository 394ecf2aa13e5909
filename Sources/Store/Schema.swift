import Base
import CSQLite
import Vault

/// The schema of a file, as the texts of the statements that made it.
///
/// SQLite stores these texts, and every ALTER edits them. Versions 3.33 to 3.54 store the same bytes, so
/// their digest is compared first. Should a version differ, in the quotes around names, in white space or
/// in the order of the entries, then the entries are compared with those that this version makes of the
/// same steps. A correct file is never taken for a damaged one.
enum Schema {
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
  static func plain(madeBy steps: [StaticString]) throws(Failure) -> [UInt8] {
    var opened: OpaquePointer?
    var result = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nil)
    defer { sqlite3_close_v2(opened) }
    for step in steps where result == SQLITE_OK {
      result = sqlite3_exec(opened, StaticCString(stringLiteral: step).start, nil, nil, nil)
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
