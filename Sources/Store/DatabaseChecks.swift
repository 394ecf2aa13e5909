public import Base
import CSQLite

extension Database {
  /// The number of the row that was inserted last. Numbers go on from the largest one, or, after the
  /// largest of all, anywhere: then that one was damaged.
  @discardableResult
  public func lastInsertedRow() throws(Failure) -> Int64 {
    let row = sqlite3_last_insert_rowid(connection)
    guard Row.counts.contains(row) else { throw damage("a row's number is damaged") }
    return row
  }

  /// Throws `storage.damaged` if somebody else has changed the schema since it was last compared. A newer
  /// library may have: what then fits is for the statements to find out.
  public func checkSchema() throws(Failure) {
    let version = version
    guard let schema, version == nil || version != checkedSchema?.version else { return }
    let number = try first("PRAGMA schema_version") { (row) throws(Failure) in row.int(0) } ?? 0
    if number != checkedSchema?.number, try !schema.fits(self) {
      throw damage("the file's schema is not this library's")
    }
    checkedSchema = (number, version)
  }

  /// A failure that no statement of the library has on its own schema.
  func isStrange(_ result: Int32) -> Bool {
    let kind = result & 0xFF
    return kind == SQLITE_ERROR || kind == SQLITE_CONSTRAINT || kind == SQLITE_MISMATCH
  }

  /// Whether the schema is the library's and a statement can be prepared: another process may have changed
  /// the schema.
  func fitsSchema(_ sql: StaticCString) -> Bool {
    var made: OpaquePointer?
    defer { sqlite3_finalize(made) }
    guard sqlite3_prepare_v3(connection, sql.start, -1, 0, &made, nil) == SQLITE_OK else {
      return false
    }
    do throws(Failure) { return try schema?.fits(self) ?? true } catch { return true }
  }

  /// SQLite's check of the whole file, with its indexes.
  public func isSound() throws(Failure) -> Bool {
    do throws(Failure) {
      let found =
        try first("PRAGMA integrity_check(1)") { (row) throws(Failure) in row.blob(0) } ?? []
      // A page that cannot be read is reported among the faults, as "error code=10", or, of the list of free
      // pages, without the code. It is a failure of the disk and does not prove damage to the file.
      if Database.names(SQLITE_IOERR, in: found) || Database.names(SQLITE_NOMEM, in: found)
        || ASCII.contains(String(decoding: found, as: UTF8.self), "failed to get page")
      {
        throw failure(SQLITE_IOERR)
      }
      return found == Array("ok".utf8)
    } catch  where error.code == .storageDamaged {
      return false
    }
  }

  /// Whether a line of SQLite's check ends with "=" and a code of this class of error.
  static func names(_ wanted: Int32, in line: [UInt8]) -> Bool {
    var code: Int32 = 0
    var digits = line.count
    while digits > 0, line[digits - 1] >= UInt8(ascii: "0"), line[digits - 1] <= UInt8(ascii: "9") {
      digits -= 1
    }
    guard digits > 0, line[digits - 1] == UInt8(ascii: "=") else { return false }
    for digit in line[digits...] { code = code &* 10 &+ Int32(digit - UInt8(ascii: "0")) }
    return code & 0xFF == wanted
  }
}
