import Base
import CSQLite

/// What a data file held at a moment: the header of the index of its log (WAL-index format, section
/// 2.1 of https://www.sqlite.org/walformat.html), which names the last commit and the sum over all
/// of them. Equal headers, equal contents; so what was read under one need not be read again.
public struct FileVersion: Equatable {
  typealias HeaderWords = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
  fileprivate let words: HeaderWords

  /// How often something was committed, at least since the log was last recovered.
  fileprivate var commits: UInt32 {
    withUnsafeBytes(of: words) { $0.load(fromByteOffset: 8, as: UInt32.self) }
  }

  public static func == (left: FileVersion, right: FileVersion) -> Bool {
    left.words == right.words
  }
}

/// What was read while the file had this version.
final class ReadCache {
  var version: FileVersion
  var session: SessionRow?
  /// Single values, by the address of their name.
  private var numbers: [(name: UnsafePointer<CChar>, value: Int64?)] = []

  init(_ version: FileVersion) { self.version = version }

  func number(_ name: StaticCString, _ read: () throws(Failure) -> Int64?) throws(Failure) -> Int64?
  {
    for known in numbers where known.name == name.start { return known.value }
    let value = try read()
    numbers.append((name.start, value))
    return value
  }
}

extension Database {
  /// Read where SQLite has the index in memory, without a lock: half of a change looks like a
  /// change. nil where that is not possible, and within a transaction, which has a state of its
  /// own.
  public var version: FileVersion? {
    isOpen && sqlite3_get_autocommit(connection) != 0 ? lastCommit : nil
  }

  /// The version that the last commit made, of whoever: in a transaction the one that it began with.
  private var lastCommit: FileVersion? {
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

  /// Called when the write lock has been taken: drop what was read from another version.
  func dropOutdatedReadCache() {
    if let readCache, readCache.version != lastCommit { self.readCache = nil }
  }

  /// Called after a commit on this connection. Writers drop the cached rows that they change, so the
  /// others stay valid, if no other connection has committed in between.
  func keepReadCache() {
    guard let readCache, let version else { return }
    if version.commits == readCache.version.commits &+ 1 { readCache.version = version }
  }

  /// The cache for the file as it is now; nil where the version cannot be told.
  var currentReadCache: ReadCache? {
    guard openStatements == 0, let version else { return nil }
    if let readCache, readCache.version == version { return readCache }
    readCache = ReadCache(version)
    return readCache
  }
}
