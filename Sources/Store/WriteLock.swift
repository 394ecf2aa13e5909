public import Base
import CPlatform
import CSQLite

extension Database {
  /// Run `body` while no connection, in any process, can commit to this file or shorten its log.
  ///
  /// A damaged file is renamed and read under this lock. A commit that is under way comes before, and
  /// the connection that takes the lock next finds the file renamed (`Database.begin`). SQLite may be
  /// unable to read the file, so its functions of the file alone take the lock, which is a byte of the
  /// log's index ("-shm"). Without an index nobody has the file open.
  public static func holdingWriteLock<Result>(
    of path: String, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard platform_exists(path), platform_exists(path + "-shm") else { return try body() }
    let file = platform_file_id(path)
    platform_opened(file)
    defer { platform_closed(file) }
    var connection: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW
    let opened = path.withCString { sqlite3_open_v2($0, &connection, flags, nil) }
    defer { sqlite3_close_v2(connection) }
    guard opened == SQLITE_OK else { throw failure(ofOpening: connection, opened) }
    var found: UnsafeMutablePointer<sqlite3_file>?
    sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &found)
    guard let found, let methods = found.pointee.pMethods, methods.pointee.iVersion >= 2 else {
      return try body()
    }
    // Where no region of the index is there yet, this opens it all the same.
    var index: UnsafeMutableRawPointer?
    try waiting { () in methods.pointee.xShmMap(found, 0, 32_768, 0, &index) }
    defer { _ = methods.pointee.xShmUnmap(found, 0) }
    try waiting { () in
      methods.pointee.xShmLock(found, 0, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE)
    }
    defer { _ = methods.pointee.xShmLock(found, 0, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE) }
    return try body()
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
