public import Base
import CSQLite

extension Database {
  /// What SQLite's checks of the whole file say, and indexes made anew where they are all that is
  /// wrong. False: the file is damaged.
  public func makeSound() throws(Failure) -> Bool {
    if try isSound() { return true }
    // Only where the trees are sound: else making an index anew frees pages of others.
    guard try passes("PRAGMA quick_check(1)"), try !rowsAreInDoubt() else { return false }
    do throws(Failure) { try execute("REINDEX") } catch  where error.code != .memoryExhausted {
      return false
    }
    Log.line(.warning, "an index did not match its table and was made anew")
    return try isSound()
  }

  /// Whether rows and indexes disagree on whose an item is. The row may be wrong: a salvage finds out by
  /// the seals.
  private func rowsAreInDoubt() throws(Failure) -> Bool {
    do throws(Failure) {
      return try exists(
        """
        SELECT * FROM (SELECT seq, owner FROM queue NOT INDEXED
          EXCEPT SELECT seq, owner FROM queue INDEXED BY queue_ready)
        UNION ALL SELECT * FROM (SELECT seq, item FROM queue NOT INDEXED
          EXCEPT SELECT seq, item FROM queue INDEXED BY sqlite_autoindex_queue_1)
        """)
    } catch  where error.code == .storageDamaged { return true }
  }

  /// SQLite's check of the whole file, with its indexes.
  public func isSound() throws(Failure) -> Bool { try passes("PRAGMA integrity_check(1)") }

  private func passes(_ check: StaticCString) throws(Failure) -> Bool {
    do throws(Failure) {
      let found = try first(check) { (row) throws(Failure) in row.blob(0) } ?? []
      // A page that cannot be read is reported among the faults, for example as "error code=10". It
      // is a failure of the disk and does not prove damage to the file.
      if Database.names(SQLITE_IOERR, in: found) || Database.names(SQLITE_NOMEM, in: found) {
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
