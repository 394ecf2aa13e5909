import Base
import CPlatform
import Store

/// Room that is kept on the disk for the calls that must work when it is full: all but those that add
/// items.
///
/// The room is the file `holdfast.reserve`. When such a call finds the disk full, the file is emptied,
/// the log is copied into the main file and takes the room that is left, and the call runs again. From
/// then on the log is written from its beginning, transactions are small (`Database.isTight`), and the
/// disk may stay full. An add or an edit first makes the reserve anew, if need be of the log's room, and
/// is refused when it cannot. Where files may not grow beyond a limit, the main file keeps as much room
/// below it, for the pages that the log adds.
final class Reserve {
  /// 1 MiB. It has room for the pages that the log adds to the main file (`FullDisk.swift`).
  static var size: Int64 { 1 << 20 }
  /// Room for the index and the beginning of a log.
  private static var openingSize: Int64 { 1 << 16 }

  private let core: Core
  /// No file of the process may be larger.
  private let fileLimit = platform_file_limit()

  init(_ core: Core) { self.core = core }

  private var path: String { Reserve.path(in: core.configuration.dataFolder) }

  private static func path(in folder: String) -> String { folder + "/holdfast.reserve" }

  /// Give room for the files of an open connection, and keep the rest for the calls. Returns whether there was any.
  static func giveForOpening(in folder: String) -> Bool { give(openingSize, in: folder) > 0 }

  /// Give back room. Returns how much.
  private static func give(_ most: Int64, in folder: String) -> Int64 {
    let path = path(in: folder)
    let room = platform_size(path)
    let left = max(0, room - most)
    guard room > 0, platform_shrink(path, left) == 0 else { return 0 }
    Log.line(.warning, "the disk is full; the reserve is used")
    return room - left
  }

  /// For a call that adds: make the reserve if it is not there. Throws `storage.full`; another failure is
  /// no reason to refuse a call.
  func make() throws(Failure) {
    let database = core.database
    // What is added while the log cannot be copied would make it longer.
    var isFull =
      database.isLogStuck && !database.reuseLog() || database.size > fileLimit - Reserve.size
    if !isFull, !isThere() {
      let room = database.emptyLog()
      isFull = !isThere()
      if isFull { database.giveToLog(room) }
    }
    database.isTight = isFull
    if isFull {
      throw Database.failure(
        ofSystem: PLATFORM_NO_SPACE, "the reserve could not be made")
    }
  }

  /// The handle closes. On a full disk the log has the room, and SQLite deletes the log with the last connection: the
  /// next start would have none. What does not fit the whole reserve makes a part of it.
  func keep() {
    guard core.database.isTight, !isThere() else { return }
    _ = core.database.emptyLog()
    var wanted = Reserve.size
    while wanted > platform_size(path), platform_reserve(path, wanted) != 0 {
      wanted -= Reserve.openingSize
    }
  }

  /// Whether the reserve is whole now. False: the disk has no room for it.
  private func isThere() -> Bool {
    platform_size(path) >= Reserve.size || !platform_is_full(platform_reserve(path, Reserve.size))
  }

  /// Give the room to the call that runs. Returns whether it is worth another try.
  func release() -> Bool {
    let database = core.database
    let room = Reserve.give(Reserve.size, in: core.configuration.dataFolder)
    database.isTight = true
    let isReusable = database.reuseLog()
    if room > 0 { database.giveToLog(room) }
    return isReusable || room > 0
  }

  /// After a call: transactions need not be small any more if the disk has room again.
  func followRoom() {
    if core.database.isTight, isThere() { core.database.isTight = false }
  }
}
