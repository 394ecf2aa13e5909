import Base
import CSQLite

/// A version of a data file's contents, read without a statement or a lock.
///
/// It is the header of the WAL index (section 2.1 of https://www.sqlite.org/walformat.html), which
/// SQLite keeps in shared memory. The header holds a counter of commits, the last commit's position
/// and the log's running checksum. So equal headers mean equal contents, and rows that were read
/// under a version need not be read again under the same one. Another process may be writing the
/// header while it is read; a mixture of two headers equals neither, which is safe: it looks like a
/// change.
public struct FileVersion: Equatable {
  typealias HeaderWords = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
  let words: HeaderWords

  /// The number of commits; it may start again when the log is recovered.
  var commits: UInt32 {
    withUnsafeBytes(of: words) { $0.load(fromByteOffset: 8, as: UInt32.self) }
  }

  public static func == (left: FileVersion, right: FileVersion) -> Bool {
    left.words == right.words
  }
}

extension Database {
  /// The version that the present call reads. nil where SQLite has no WAL index in memory, and within a
  /// write transaction: its own changes are not in the index yet.
  public var version: FileVersion? {
    guard isOpen, reads.transaction != .none || sqlite3_get_autocommit(connection) != 0 else {
      return nil
    }
    return runningCall.map { versionOfReads($0) } ?? lastCommit
  }

  /// The version of the last commit by any process; in a write transaction, the one it began with.
  public var lastCommit: FileVersion? {
    guard let connection else { return nil }
    var file: UnsafeMutablePointer<sqlite3_file>?
    guard
      sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK,
      let file, let methods = file.pointee.pMethods, methods.pointee.iVersion >= 2
    else { return nil }
    var index: UnsafeMutableRawPointer?
    guard methods.pointee.xShmMap(file, 0, 32_768, 0, &index) == SQLITE_OK,
      let index
    else { return nil }
    return FileVersion(words: index.load(as: FileVersion.HeaderWords.self))
  }
}
