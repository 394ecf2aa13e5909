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

  // MARK: Opening the main file

  /// Open the main file. One that is damaged is set aside first, and a fresh one takes its place;
  /// `replaced` says that this was done here. `damaged` is a file in which damage was found while it was
  /// open. Who finds that the main file is another one uses that.
  static func openMain(
    in folder: String, damaged: UInt64? = nil, at now: Instant
  ) throws(Failure) -> (database: Database, replaced: Bool) {
    var replaced = false
    var damaged = damaged
    // A newer library may have changed the file while it was open.
    if damaged != nil { try refuseNewer(in: folder) }
    for _ in 0..<mostReplaced {
      if let file = damaged, try replace(file, in: folder, at: now) { replaced = true }
      let file = platform_file_id(mainPath(in: folder))
      do throws(Failure) {
        let database = try openSharedMain(in: folder)
        if try isSound(database, unlessLarge: true) { return (database, replaced) }
        database.close()
      } catch  where error.code == .storageDamaged || error.code == .storageNewer {
        if error.code == .storageNewer { try refuseNewer(in: folder) }
      }
      damaged = file
    }
    throw Failure(.storageDamaged, "new data files are damaged, too")
  }

  /// A disk that damages each new file is no reason to fill it.
  private static var mostReplaced: Int { 4 }

  /// The main file as it is; a damaged one is refused.
  static func openSharedMain(in folder: String) throws(Failure) -> Database {
    // An index is left by a killed process, or in use. Who opens the file first makes the index anew,
    // so what it says is read before, and meanwhile no other process may open the file.
    let path = mainPath(in: folder)
    let isLeft = platform_exists(path + "-shm")
    let lock = try lock(folder, exclusively: isLeft)
    defer { platform_folder_unlock(lock) }
    guard movedLabel(in: folder) == nil else {
      throw Failure(.storageDamaged, "a recovery was cut short")
    }
    if isLeft, try LogIndex.hasLostCommits(path) {
      throw Failure(.storageDamaged, "the log has lost commits")
    }
    // The cache is made after the main file is written.
    if platform_size(path) == 0, platform_size(cachePath(in: folder)) > 0 {
      throw Failure(.storageDamaged, "the main file is empty")
    }
    return try openMain(at: path)
  }

  private static func openMain(at path: String) throws(Failure) -> Database {
    let database = try Database(path: path, .full)
    try Schema.main.apply(to: database)
    return database
  }

  /// A newer library's file is left alone. A damaged header can look like a newer version.
  private static func refuseNewer(in folder: String) throws(Failure) {
    guard platform_exists(mainPath(in: folder)) else { return }
    do throws(Failure) {
      let database = try Database(path: mainPath(in: folder), .full)
      guard try Schema.main.isOlder(than: database), try database.isSound() else { return }
    } catch  where error.code == .storageDamaged { return }
    throw Schema.isNewer
  }

  /// Check a file whole, with what is kept of its rows. `unlessLarge`: only if that takes less time than
  /// opening it. Damage in a large file is found when its pages are read.
  private static func isSound(
    _ database: Database, unlessLarge: Bool = false
  ) throws(Failure) -> Bool {
    if unlessLarge, platform_size(database.path) > checkedSize { return true }
    guard try database.isSound() else { return false }
    try QueueTable(database).checkCounts()
    return true
  }

  // MARK: Setting files aside

  /// A file that is being set aside has its label as the end of its name, until the fresh file is there
  /// and has the name that stays. So a recovery that was cut short is seen, and goes on.
  private enum Label: String, CaseIterable { case damaged, keyless }

  private static func movedPath(_ label: Label, in folder: String) -> String {
    mainPath(in: folder) + "." + label.rawValue
  }

  /// The label of a file whose recovery was cut short; nil: there is none.
  private static func movedLabel(in folder: String) -> Label? {
    Label.allCases.first { isMoved(movedPath($0, in: folder)) }
  }

  /// A folder that somebody has made is no file that was moved.
  private static func isMoved(_ path: String) -> Bool {
    platform_exists(path) && !platform_is_folder(path)
  }

  /// Set the main file aside if it is this one. Returns false if another process already did.
  private static func replace(
    _ damaged: UInt64, in folder: String, at now: Instant
  ) throws(Failure) -> Bool {
    let lock = try lock(folder, exclusively: true)
    defer { platform_folder_unlock(lock) }
    if let label = movedLabel(in: folder) {
      try setMainAside(in: folder, label, at: now)
      return true
    }
    guard platform_file_id(mainPath(in: folder)) == damaged else { return false }
    try setMainAside(in: folder, .damaged, at: now)
    return true
  }

  /// Set the main file aside because its key is lost, and the cache, which opens with it, unless another
  /// process already did. `keyless` is the file that is open. `saveKey` saves the key of the file that
  /// follows; if it fails, nothing is changed.
  static func replaceKeyless(
    _ keyless: Database, in folder: String, at now: Instant, _ saveKey: () throws(Failure) -> Void
  ) throws(Failure) -> Database {
    do {
      let lock = try lock(folder, exclusively: true)
      defer { platform_folder_unlock(lock) }
      let isCurrent = keyless.isCurrent
      if isCurrent { try saveKey() }
      keyless.close()
      if isCurrent {
        try setMainAside(in: folder, .keyless, at: now)
        _ = try setAside(cachePath(in: folder), Label.keyless.rawValue, at: now.wallMS)
      }
    }
    return try openMain(in: folder, at: now).database
  }

  /// Whether a file of the folder has this name, and a main file was renamed to it.
  static func isAside(_ name: String, in folder: String) -> Bool {
    for label in Label.allCases {
      let start = "holdfast.db.\(label.rawValue)-"
      let time = name.utf8.dropFirst(start.utf8.count)
      if name.utf8.starts(with: start.utf8), !time.isEmpty, time.allSatisfy({ ASCII.isDigit($0) }) {
        return platform_exists(folder + "/" + name)
      }
    }
    return false
  }

  /// The lock of the folder: shared to open the main file, exclusive to set it aside. Waits as long as for
  /// SQLite's locks. Without the lock two processes could recover a file at once.
  private static func lock(_ folder: String, exclusively: Bool) throws(Failure) -> Int32 {
    let lock = platform_folder_lock(folder, exclusively)
    guard lock >= 0 else {
      throw Database.failure(ofSystem: Int(-lock), "the data folder could not be locked")
    }
    return lock
  }

  /// Under the exclusive lock. Each step finds what the steps before have done.
  private static func setMainAside(
    in folder: String, _ label: Label, at now: Instant
  ) throws(Failure) {
    let main = mainPath(in: folder)
    let moved = movedPath(label, in: folder)
    if !isMoved(moved) {
      try Database.holdingWriteLock(of: main) { () throws(Failure) in
        // Somebody may have removed the file, and left its log.
        try check(
          platform_exists(main) ? platform_rename(main, moved) : platform_create(moved), moved)
      }
    }
    // The database comes first, because SQLite would open it without its log. Beside a main file, a log is
    // that one's.
    if !platform_exists(main) {
      for suffix in ["-wal", "-shm"] where platform_exists(main + suffix) {
        guard !platform_exists(moved + suffix) else { continue }
        try check(platform_rename(main + suffix, moved + suffix), moved + suffix)
      }
    }
    let aside = try makeMain(in: folder, after: moved, label, at: now)
    Salvage.removeCopy(of: moved)
    // The database comes last, because it says that this is not done.
    for suffix in ["-wal", "-shm", ""] where platform_exists(moved + suffix) {
      let path = folder + "/" + aside + suffix
      try check(platform_rename(moved + suffix, path), path)
    }
  }

  /// Make the fresh main file with what it keeps of the one that was moved. Returns the name that the moved
  /// file gets. Nobody has used a fresh file that is there: where it is damaged, it is set aside as it is.
  private static func makeMain(
    in folder: String, after moved: String, _ label: Label, at now: Instant
  ) throws(Failure) -> String {
    var made = try openFresh(in: folder)
    if made == nil {
      let main = mainPath(in: folder)
      try rename(main, to: folder + "/" + freeName(in: folder, .damaged, at: now.wallMS))
      made = try openFresh(in: folder)
    }
    guard let fresh = made else { throw Failure(.storageDamaged, "a new data file is damaged") }
    defer { fresh.close() }
    let meta = MetaTable(fresh)
    if let aside = try meta.text(.salvage), !platform_exists(folder + "/" + aside) { return aside }
    let aside = freeName(in: folder, label, at: now.wallMS)
    let salvage = try Salvage.open(moved)
    let number = try salvage.number(.deviceKey)
    let keyless = try KeylessList(try salvage.text(.keyless))
    if label == .keyless { keyless.add(aside, number, try salvage.blob(.keyCheck)) }
    try fresh.transaction { () throws(Failure) in
      try meta.set(.salvage, .text(aside))
      if let project = try salvage.project() { try meta.setProject(project) }
      // What is owed is still to be erased.
      try meta.set(.owedKeyErasures, .int(try salvage.number(.owedKeyErasures)))
      if let owed = try salvage.blob(.owedCacheErasures) {
        try meta.set(.owedCacheErasures, .blob(owed))
      }
      if !keyless.files.isEmpty { try meta.set(.keyless, .text(try keyless.text)) }
      // A lost key is never overwritten: the next one has another name.
      let deviceKey = number + (label == .keyless ? 1 : 0)
      if deviceKey > 0 { try meta.set(.deviceKey, .int(deviceKey)) }
    }
    return aside
  }

  /// The fresh main file, checked whole; nil: it is damaged.
  private static func openFresh(in folder: String) throws(Failure) -> Database? {
    do throws(Failure) {
      let fresh = try openMain(at: mainPath(in: folder))
      _ = try SessionTable(fresh).read()
      if try isSound(fresh) { return fresh }
      fresh.close()
      return nil
    } catch  where error.code == .storageDamaged || error.code == .storageNewer { return nil }
  }

  /// Two files may be set aside in one millisecond, or under a clock that stands still.
  private static func freeName(in folder: String, _ label: Label, at nowMS: Int64) -> String {
    var time = nowMS
    while true {
      let name = "holdfast.db.\(label.rawValue)-\(time)"
      if !platform_exists(folder + "/" + name) { return name }
      time += 1
    }
  }

  /// `path` is what the file was to be named.
  private static func check(_ problem: Int32, _ path: String) throws(Failure) {
    guard problem == 0 else {
      throw Database.failure(
        ofSystem: Int(problem), "a file could not be set aside", Database.fileName(path))
    }
  }

  // MARK: The cache

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
    defer { platform_folder_unlock(lock) }
    if !(damaged?.isCurrent ?? false) {
      do throws(Failure) {
        let sound = try openCache(in: folder)
        if try sound.isSound() { return (sound, false) }
      } catch  where error.code == .storageDamaged || error.code == .storageNewer {}
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
      try check(platform_rename(path + suffix, aside + suffix), aside + suffix)
    }
  }
}
