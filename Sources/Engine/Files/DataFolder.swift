import Base
import CPlatform
import Store

/// The data folder and its two files.
enum DataFolder {
  static func make(_ path: String) throws(Failure) {
    let problem = Int(platform_folder(path))
    if problem == PLATFORM_NO_FOLDER {
      throw Failure(
        .requestInvalidValue, "a folder is expected, and a file has this name or one above it",
        field: "/data_dir")
    }
    guard problem == 0 else {
      throw Database.failure(ofSystem: problem, "the data folder could not be made")
    }
  }

  /// Refuse a file that was set aside, before it is read, if others own it or can change it.
  static func checkAside(_ name: String, in folder: String) throws(Failure) {
    for suffix in ["", "-wal", "-shm"] { try PrivateFile.check(name + suffix, in: folder) }
  }

  /// Files up to this size are checked whole when opened.
  private static var checkedSize: Int64 { 1_048_576 }

  static func mainPath(in folder: String) -> String { folder + "/holdfast.db" }
  static func cachePath(in folder: String) -> String { folder + "/cache.db" }

  /// Locked exclusively to set a damaged file aside, shared to open a file.
  private static func lockPath(in folder: String) -> String { folder + "/recovery.lock" }

  /// Stores the set-aside name until it is in the new database, so a crash can resume.
  private static func markPath(in folder: String) -> String { folder + "/recovery.name" }

  static func openMain(in folder: String) throws(Failure) -> Database {
    // An index is left by a killed process, or in use. Who opens the file first makes the index anew,
    // so what it says must be read before, and meanwhile no other process may open the file.
    let isLeft = platform_exists(mainPath(in: folder) + "-shm")
    let lock = try lock(folder, exclusively: isLeft)
    defer { platform_file_unlock(lock) }
    guard !platform_exists(markPath(in: folder)) else {
      throw Failure(.storageDamaged, "a recovery was cut short")
    }
    return try openLockedMain(in: folder, alone: isLeft)
  }

  /// `alone`: no other process can open the file meanwhile.
  private static func openLockedMain(in folder: String, alone: Bool) throws(Failure) -> Database {
    let path = mainPath(in: folder)
    // SQLite treats an empty file as new and deletes its log.
    let size = platform_size(path)
    if size <= 0, platform_size(path + "-wal") > 0 {
      // A file whose size is unknown may not be empty.
      throw Failure(
        size < -1 ? .storageFailed : .storageDamaged, "the data file is empty, and its log is not")
    }
    let database: Database
    if alone, let index = LogIndex.left(of: path) {
      database = try openWithLog(path, index)
    } else {
      database = try Database(path: path, .full)
    }
    try Schema.main.apply(to: database)
    return database
  }

  /// Open the file with every commit that its log holds. SQLite drops all that follows a damaged
  /// frame; the index tells, and then the log is repaired. Until that is done, the index stays what it
  /// was, so that another call or process can try again.
  private static func openWithLog(
    _ path: String, _ index: LogIndex
  ) throws(Failure) -> Database {
    do throws(Failure) {
      let database = try Database(path: path, .full, keepsLog: true)
      if !index.claimsMore(than: database.version, in: path) {
        database.keepsLog = false
        return database
      }
      database.close()
    } catch {
      index.putBack(path)
      guard error.code == .storageDamaged, index.claimsMore(than: nil, in: path) else {
        throw error
      }
    }
    index.putBack(path)
    let isExact = try LogRepair.repair(path, index)
    Log.line(.warning, "the log was damaged; \(isExact ? "all" : "most") of it could be repaired")
    let database = try Database(path: path, .full)
    database.isDoubtful = !isExact
    return database
  }

  /// Whether a newer library wrote the file: then it is sound, and this library must leave it alone.
  /// A damaged header can look like a newer version. Under the lock.
  private static func isNewer(_ error: Failure, in folder: String) throws(Failure) -> Bool {
    guard error.code == .storageNewer else { return false }
    return try Database(path: mainPath(in: folder), .full).isSound()
  }

  /// Open the main file; a damaged one is set aside first.
  static func openOrReplaceMain(
    in folder: String, at now: Instant
  ) throws(Failure) -> (database: Database, replaced: Bool) {
    do throws(Failure) {
      let database = try openMain(in: folder)
      // Check a small file whole: that takes less time than opening it. Damage in a large one is
      // found when its pages are read.
      let isSmall = platform_size(mainPath(in: folder)) <= checkedSize
      if !isSmall, !database.isDoubtful { return (database, false) }
      if try isSound(database) { return (database, false) }
      database.close()
      return try replaceDamaged(in: folder, at: now)
    } catch  where error.code == .storageDamaged || error.code == .storageNewer {
      // A newer library's file is left alone there.
      return try replaceDamaged(in: folder, at: now)
    }
  }

  /// Check a file whole, with what is kept of its rows.
  private static func isSound(_ database: Database) throws(Failure) -> Bool {
    guard try database.makeSound() else { return false }
    try QueueTable(database).checkCounts()
    return true
  }

  /// Set a damaged main file aside and store its name in a fresh one. If several processes find the
  /// damage, the first one does this and the others open its file. If it dies in between, the next
  /// one completes the replacement. A file whose indexes could be rebuilt stays, unless it is
  /// `hopeless`: it passed SQLite's checks before, and a call failed again.
  static func replaceDamaged(
    in folder: String, hopeless: UInt64? = nil, at now: Instant
  ) throws(Failure) -> (database: Database, replaced: Bool) {
    let lock = try lock(folder, exclusively: true)
    defer { platform_file_unlock(lock) }
    if !platform_exists(markPath(in: folder)),
      let sound = try openSoundMain(in: folder, unless: hopeless)
    {
      return (sound, false)
    }
    return (try setLockedMainAside(in: folder, damagedLabel, at: now), true)
  }

  /// The main file, checked whole; nil: it is damaged, or `hopeless`. Under the lock. A failure that says
  /// nothing about the file is thrown.
  private static func openSoundMain(
    in folder: String, unless hopeless: UInt64? = nil
  ) throws(Failure) -> Database? {
    do throws(Failure) {
      let found = try openLockedMain(in: folder, alone: true)
      if found.fileID != hopeless {
        _ = try SessionTable(found).read()
        if try isSound(found) { return found }
      }
      found.close()
      return nil
    } catch  where error.code == .storageDamaged || error.code == .storageNewer {
      if try isNewer(error, in: folder) { throw error }
      return nil
    }
  }

  /// Set the main file aside because its key is lost, and the cache, which opens with it, unless another
  /// process already did. `keyless` is the file that is open. `saveKey` saves the key of the file that
  /// follows; if it fails, nothing is changed.
  static func replaceKeyless(
    _ keyless: Database, in folder: String, at now: Instant, _ saveKey: () throws(Failure) -> Void
  ) throws(Failure) -> Database {
    let lock = try lock(folder, exclusively: true)
    defer { platform_file_unlock(lock) }
    if !platform_exists(markPath(in: folder)), !keyless.isCurrent {
      keyless.close()
      return try openLockedMain(in: folder, alone: true)
    }
    try saveKey()
    keyless.close()
    let fresh = try setLockedMainAside(in: folder, keylessLabel, at: now)
    _ = try setAside(cachePath(in: folder), keylessLabel, at: now.wallMS)
    return fresh
  }

  private static var keylessLabel: String { "keyless" }
  private static var damagedLabel: String { "damaged" }

  /// Whether this is the name of a file whose key is gone.
  static func isKeyless(_ aside: String) -> Bool {
    aside.utf8.starts(with: "holdfast.db.keyless".utf8)
  }

  /// Whether a file of the folder has this name, and a main file was renamed to it.
  static func isAside(_ name: String, in folder: String) -> Bool {
    isNameOfAside(name) && platform_exists(folder + "/" + name)
  }

  private static func isNameOfAside(_ name: String) -> Bool {
    for label in [keylessLabel, damagedLabel] {
      let start = "holdfast.db.\(label)-"
      let time = name.utf8.dropFirst(start.utf8.count)
      if name.utf8.starts(with: start.utf8), !time.isEmpty, time.allSatisfy({ ASCII.isDigit($0) }) {
        return true
      }
    }
    return false
  }

  /// Waits as long as for SQLite's locks. Without the lock two processes could recover a file at once.
  private static func lock(_ folder: String, exclusively: Bool) throws(Failure) -> Int32 {
    let lock = platform_file_lock(lockPath(in: folder), exclusively)
    guard lock >= 0 else {
      throw Database.failure(
        ofSystem: Int(-lock), "the data folder could not be locked", "recovery.lock")
    }
    return lock
  }

  /// Under the lock. The name comes first, from the mark if a recovery was cut short. Nobody has used the
  /// new file that such a recovery has made: where it is damaged, it is set aside as it is.
  private static func setLockedMainAside(
    in folder: String, _ label: String, at now: Instant
  ) throws(Failure) -> Database {
    let aside: String
    if let name = try markedName(in: folder) {
      aside = name
    } else {
      aside = freeName(in: folder, label, at: now.wallMS)
      let bytes = Array(aside.utf8)
      try check(platform_write(markPath(in: folder), bytes, bytes.count))
    }
    try setMainAside(in: folder, as: folder + "/" + aside)
    let values = try Salvage(path: folder + "/" + aside)
      .values([.eventSequence, .project, .deviceKey, .keyless])
    // A lost key is never overwritten: the next one has another name.
    let deviceKey = values.number(.deviceKey) + (isKeyless(aside) ? 1 : 0)
    var keyless = values[.keyless]?.text
    if isKeyless(aside) {
      let list = try KeylessList(keyless)
      list.add(aside)
      keyless = try list.text
    }
    var made = try openSoundMain(in: folder)
    if made == nil {
      let name = freeName(in: folder, damagedLabel, at: now.wallMS)
      try setMainAside(in: folder, as: folder + "/" + name)
      made = try openSoundMain(in: folder)
    }
    guard let fresh = made else { throw Failure(.storageDamaged, "a new data file is damaged") }
    try fresh.transaction { () throws(Failure) in
      let meta = MetaTable(fresh)
      try meta.set(.salvage, .text(aside))
      // Hosts acknowledge by number, also those of other processes, which know the old file.
      try meta.set(.eventSequence, .int(values.number(.eventSequence)))
      if let project = values.project { try meta.setProject(project) }
      if let keyless { try meta.set(.keyless, .text(keyless)) }
      if deviceKey > 0 { try meta.set(.deviceKey, .int(deviceKey)) }
    }
    try check(platform_remove(markPath(in: folder)))
    return fresh
  }

  /// The name that a recovery which was cut short has chosen; nil: there is none.
  private static func markedName(in folder: String) throws(Failure) -> String? {
    var bytes = [UInt8](repeating: 0, count: 64)
    var length = 0
    let problem = platform_read(markPath(in: folder), &bytes, bytes.count, &length)
    if Int(problem) == PLATFORM_NO_ENTRY { return nil }
    try check(problem)
    let name = String(decoding: bytes[..<length], as: UTF8.self)
    return isNameOfAside(name) ? name : nil
  }

  /// Two files may be set aside in one millisecond, or under a clock that stands still.
  private static func freeName(in folder: String, _ label: String, at nowMS: Int64) -> String {
    var time = nowMS
    while platform_exists(folder + "/holdfast.db.\(label)-\(time)") { time += 1 }
    return "holdfast.db.\(label)-\(time)"
  }

  /// Rename the database before its log, because SQLite would open it without its log. What is renamed
  /// already stays: beside a main file, or the log of the old one, a log is the new file's.
  private static func setMainAside(in folder: String, as aside: String) throws(Failure) {
    let main = mainPath(in: folder)
    try Database.holdingWriteLock(of: main) { () throws(Failure) in
      if !platform_exists(aside), platform_exists(main) { try check(platform_rename(main, aside)) }
      let size = platform_size(main)
      guard size >= -1 else { throw Failure(.storageFailed, "a file could not be looked at") }
      guard size == -1 else { return }
      for suffix in ["-wal", "-shm"] where platform_exists(main + suffix) {
        guard !platform_exists(aside + suffix) else { continue }
        try check(platform_rename(main + suffix, aside + suffix))
      }
    }
  }

  private static func check(_ problem: Int32) throws(Failure) {
    guard problem == 0 else {
      throw Database.failure(ofSystem: Int(problem), "a file could not be set aside")
    }
  }

  static func openCache(in folder: String) throws(Failure) -> Database {
    let database = try Database(path: cachePath(in: folder), .normal)
    try Schema.cache.apply(to: database)
    return database
  }

  static func holdsAnything(_ path: String) -> Bool { platform_size(path) > 0 }

  /// Set a damaged cache aside and start a fresh one. If several processes find the damage, the
  /// first one does this. Only the latest such file is kept. `damaged`: the open file in which the
  /// damage was found; nil if the file does not open.
  static func replaceCache(
    _ damaged: Database?, in folder: String
  ) throws(Failure) -> (database: Database, isReplaced: Bool) {
    let lock = try lock(folder, exclusively: true)
    defer { platform_file_unlock(lock) }
    if !(damaged?.isCurrent ?? false), let sound = try? openCache(in: folder),
      try sound.isSound()
    {
      return (sound, false)
    }
    try rename(cachePath(in: folder), to: cachePath(in: folder) + damagedCache)
    return (try openCache(in: folder), true)
  }

  /// Remove the cache that was set aside: what is erased from the cache must not stay in it.
  static func removeDamagedCache(in folder: String) throws(Failure) {
    for suffix in ["-wal", "-shm", ""] {
      let path = cachePath(in: folder) + damagedCache + suffix
      guard platform_exists(path) else { continue }
      let problem = platform_remove(path)
      guard problem == 0 else {
        throw Failure(
          .storageFailed, "a file could not be removed", detail: ["errno": .int(Int64(problem))])
      }
    }
  }

  private static var damagedCache: String { ".damaged" }

  /// Rename a file and its log out of the way; nothing is deleted.
  static func setAside(_ path: String, _ label: String, at nowMS: Int64) throws(Failure) -> String {
    let aside = "\(path).\(label)-\(nowMS)"
    try rename(path, to: aside)
    return aside
  }

  private static func rename(_ path: String, to aside: String) throws(Failure) {
    for suffix in ["-wal", "-shm", ""] where platform_exists(path + suffix) {
      try check(platform_rename(path + suffix, aside + suffix))
    }
  }
}
