import Base
import CPlatform
import CSQLite

/// The log on a full disk.
///
/// SQLite can begin the log anew only when all of it was copied into the file, and the file may have to
/// grow for that. So the log never holds more new pages than the reserve has room for
/// (`checkpointAfterCommits`), and on a full disk the log owns the room that is left: nobody else can
/// take it between two calls. When the file must grow, the unused end of the log gives up as much as
/// that takes.
extension Database {
  /// The log is copied into the file after a commit that makes it this long, as SQLite does by itself.
  private static var usualFrames: Int32 { 500 }
  /// The same on a full disk, so that each transaction finds nearly the whole log free.
  private static var tightFrames: Int32 { 32 }
  /// The new pages that the log may hold. One transaction more, with the largest item, is less than the
  /// reserve.
  private static var mostNewPages: Int64 { 150 }

  func checkpointAfterCommits() {
    sqlite3_wal_hook(
      connection,
      { (context, _, _, frames) in
        guard let context else { return SQLITE_OK }
        let database = Unmanaged<Database>.fromOpaque(context).takeUnretainedValue()
        database.checkpointIfLong(frames)
        return SQLITE_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  private func checkpointIfLong(_ frames: Int32) {
    guard
      frames >= (isTight ? Database.tightFrames : Database.usualFrames)
        || Int64(frames) >= Database.mostNewPages && newPages() >= Database.mostNewPages
    else { return }
    isLogStuck = isFull(checkpoint())
  }

  /// The size of the file when the log is copied.
  public var size: Int64 { lastCommit.map { $0.pages * $0.pageSize } ?? 0 }

  /// By how many pages the file grows when the log is copied.
  private func newPages() -> Int64 {
    guard let last = lastCommit, last.pageSize > 0 else { return 0 }
    return last.pages - platform_size(path) / last.pageSize
  }

  /// Copy what can be copied of the log into the file, without waiting for others. `SQLITE_OK`: all of it
  /// was, so the next transaction begins the log anew, in the room that it has.
  private func checkpoint() -> Int32 {
    // SQLite reads the address of a closed connection. It copies nothing while the connection reads.
    guard isOpen else { return SQLITE_MISUSE }
    pauseReads()
    var (frames, copied): (Int32, Int32) = (0, -1)
    let result = sqlite3_wal_checkpoint_v2(
      connection, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied)
    return result == SQLITE_OK && frames != copied ? SQLITE_BUSY : result
  }

  /// Make the log's room usable again. Returns whether it is.
  @discardableResult
  public func reuseLog() -> Bool {
    isLogStuck = false
    var result = checkpoint()
    if isFull(result), growFile() { result = checkpoint() }
    isLogStuck = isFull(result)
    return result == SQLITE_OK
  }

  /// Give the log's room back; returns how much.
  public func emptyLog() -> Int64 {
    let before = platform_size(path + "-wal")
    do throws(Failure) { try flush() } catch { return 0 }
    return max(0, before - max(0, platform_size(path + "-wal")))
  }

  /// The disk is full and `room` bytes were just freed: the log takes them before others do.
  public func giveToLog(_ room: Int64) {
    resizeLog { (size, _) in size + room }
  }

  /// Shorten the log by what the file must grow when the log is copied.
  private func growFile() -> Bool {
    resizeLog { (size, last) in
      let end = 32 + Int64(last.frames) * (last.pageSize + 24)
      return min(size, max(end, size - (newPages() + 2) * last.pageSize))
    }
  }

  /// Change the unused end of the log's file. An open write transaction keeps others from using it.
  @discardableResult
  private func resizeLog(_ size: (Int64, FileVersion) -> Int64) -> Bool {
    do throws(Failure) {
      return try transaction { () throws(Failure) in
        guard let last = lastCommit else { return false }
        let before = platform_size(path + "-wal")
        let after = size(before, last)
        return before >= 0 && sqlite3_resize_log(connection, after) == SQLITE_OK && after != before
      }
    } catch { return false }
  }
}

extension FileVersion {
  /// The committed frames of the log.
  var frames: Int {
    withUnsafeBytes(of: words) { Int($0.load(fromByteOffset: 16, as: UInt32.self)) }
  }
  /// The size of the file in pages, with the log.
  var pages: Int64 {
    withUnsafeBytes(of: words) { Int64($0.load(fromByteOffset: 20, as: UInt32.self)) }
  }
  var pageSize: Int64 {
    let size = withUnsafeBytes(of: words) { $0.load(fromByteOffset: 14, as: UInt16.self) }
    return size == 1 ? 65536 : Int64(size)
  }
}
