import Base
import CPlatform
import Store

/// The data folder and its two files.
enum Files {
  static func makeFolder(_ path: String) throws(Failure) {
    let problem = platform_folder(path)
    guard problem == 0 else {
      throw Failure(
        Int(problem) == PLATFORM_READ_ONLY || Int(problem) == PLATFORM_NO_ACCESS
          ? .storageReadOnly : .storageFailed, "the data folder could not be made",
        field: "/data_dir", detail: ["errno": .int(Int64(problem))])
    }
  }

  /// Files up to this size are checked whole when opened.
  private static var checkedSize: Int64 { 1_048_576 }

  static func mainPath(in folder: String) -> String { folder + "/holdfast.db" }
  static func cachePath(in folder: String) -> String { folder + "/cache.db" }

  static func openMain(in folder: String) throws(Failure) -> Database {
    // SQLite takes an empty file for a new one and throws its log away, with all that is in it.
    let size = platform_size(mainPath(in: folder))
    if size <= 0, platform_size(mainPath(in: folder) + "-wal") > 0 {
      // One that could not be looked at need not be empty.
      throw Failure(
        size < -1 ? .storageFailed : .storageDamaged, "the data file is empty, and its log is not")
    }
    let database = try Database(path: mainPath(in: folder), .full)
    try Migrations.main.apply(to: database)
    return database
  }

  /// Open the main file; a damaged one is set aside first.
  static func openOrReplaceMain(
    in folder: String, at now: Instant
  ) throws(Failure) -> (database: Database, replaced: Bool) {
    do throws(Failure) {
      let database = try openMain(in: folder)
      // A small file is read in less than it takes to open it; damage in a large one shows when its
      // pages are used.
      let isSmall = platform_size(mainPath(in: folder)) <= checkedSize
      if !isSmall { return (database, false) }
      if try database.isSound() { return (database, false) }
      database.close()
      return (try replaceDamaged(in: folder, at: now), true)
    } catch  where error.code == .storageDamaged || error.code == .storageNewer {
      // Noise in the header can look like a newer version; a newer library's file is sound.
      if error.code == .storageNewer,
        try Database(path: mainPath(in: folder), .full).isSound()
      {
        throw error
      }
      return (try replaceDamaged(in: folder, at: now), true)
    }
  }

  /// Set a damaged main file aside and note its name in a fresh one. Of several processes that find
  /// the damage at once, the first one does it; the others open what it made.
  static func replaceDamaged(in folder: String, at now: Instant) throws(Failure) -> Database {
    let lock = platform_file_lock(folder + "/recovery.lock", true, true)
    guard lock >= 0 else {
      throw Database.failure(ofSystem: Int(-lock), "the damaged file could not be locked")
    }
    defer { platform_file_unlock(lock) }
    do throws(Failure) {
      let found = try openMain(in: folder)
      _ = try SessionTable(found).read()
      if try found.isSound() { return found }
      found.close()
    } catch  where error.code == .storageDamaged || error.code == .storageNewer {
      // Damaged indeed. Any other failure says nothing about the file.
    }
    let aside = try setAside(mainPath(in: folder), "damaged", at: now.wallMS)
    let fresh = try openMain(in: folder)
    let name = aside.utf8.split(separator: UInt8(ascii: "/")).last.map { Array($0) } ?? []
    try MetaTable(fresh).set(.salvage, .text(String(decoding: name, as: UTF8.self)))
    return fresh
  }

  static func openCache(in folder: String) throws(Failure) -> Database {
    let database = try Database(path: cachePath(in: folder), .normal)
    try Migrations.cache.apply(to: database)
    return database
  }

  /// Rename a file and its log out of the way; nothing is deleted.
  static func setAside(_ path: String, _ label: String, at nowMS: Int64) throws(Failure) -> String {
    let aside = "\(path).\(label)-\(nowMS)"
    for suffix in ["-wal", "-shm", ""] where platform_exists(path + suffix) {
      let problem = platform_rename(path + suffix, aside + suffix)
      guard problem == 0 else {
        throw Failure(
          .storageFailed, "a file could not be set aside",
          detail: ["errno": .int(Int64(problem))])
      }
    }
    return aside
  }
}
