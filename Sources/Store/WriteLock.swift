public import Base
import CPlatform
import CSQLite

extension Database {
  /// A file as SQLite's functions of files see it, which also work where SQLite cannot read it.
  struct RawFile {
    fileprivate let file: UnsafeMutablePointer<sqlite3_file>
    fileprivate let methods: sqlite3_io_methods
    /// No connection has the file open, in any process, and none can open it meanwhile.
    let isUnused: Bool

    /// The log's index ("-shm"), which somebody uses.
    func index() throws(Failure) -> UnsafeMutableRawPointer? {
      var index: UnsafeMutableRawPointer?
      // Where no region of the index is there yet, this opens it all the same.
      try waiting { () in methods.xShmMap(file, 0, 32_768, 0, &index) }
      return index
    }

    func closeIndex() { _ = methods.xShmUnmap(file, 0) }
  }

  /// Run `body` while no connection, in any process, can commit to this file or shorten its log.
  ///
  /// A damaged file is renamed under this lock. A commit that is under way comes before, and the
  /// connection that takes the lock next finds the file renamed (`Database.begin`). Where nobody uses the
  /// file, it is the lock of the file itself: the index of the log stays as a killed process has left it.
  public static func holdingWriteLock<Result>(
    of path: String, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withRawFile(path) { (raw) throws(Failure) -> Result in
      if raw?.isUnused ?? true { return try body() }
      guard let raw else { return try body() }
      _ = try raw.index()
      defer { raw.closeIndex() }
      try waiting { () in
        raw.methods.xShmLock(raw.file, 0, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)
      }
      defer {
        _ = raw.methods.xShmLock(raw.file, 0, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)
      }
      return try body()
    }
  }

  /// nil: there is no file, or the system has no index in memory.
  ///
  /// Each connection of a write-ahead log holds SQLite's shared lock of the file, from before it opens the
  /// index until it is closed, also towards this process. So where the exclusive lock is free, nobody does.
  static func withRawFile<Result>(
    _ path: String, _ body: (RawFile?) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard platform_exists(path) else { return try body(nil) }
    try refuseFolders(path)
    var connection: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW
    let opened = path.withCString { sqlite3_open_v2($0, &connection, flags, nil) }
    defer { sqlite3_close_v2(connection) }
    guard opened == SQLITE_OK else { throw failure(ofOpening: connection, opened) }
    var found: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &found)
    guard let found, let methods = found.pointee.pMethods?.pointee, methods.iVersion >= 2 else {
      return try body(nil)
    }
    try waiting { () in methods.xLock(found, SQLITE_LOCK_SHARED) }
    defer { _ = methods.xUnlock(found, SQLITE_LOCK_NONE) }
    let isUnused = methods.xLock(found, SQLITE_LOCK_EXCLUSIVE) == SQLITE_OK
    // A lock that was not given leaves a claim to it, which keeps others from opening the file.
    if !isUnused { _ = methods.xUnlock(found, SQLITE_LOCK_SHARED) }
    return try body(RawFile(file: found, methods: methods, isUnused: isUnused))
  }

  /// Try until nobody else is in the way, as long as a call waits for locks.
  private static func waiting(_ step: () -> Int32) throws(Failure) {
    var tries: Int32 = 0
    while true {
      let result = step()
      if result == SQLITE_OK { return }
      guard result & 0xFF == SQLITE_BUSY, platform_patience_wait(tries) else {
        throw failure(result, "a data file could not be locked")
      }
      tries += 1
    }
  }
}
