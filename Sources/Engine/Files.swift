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

  static func mainPath(in folder: String) -> String { folder + "/holdfast.db" }
  static func cachePath(in folder: String) -> String { folder + "/cache.db" }

  static func openMain(in folder: String) throws(Failure) -> Database {
    let database = try Database(path: mainPath(in: folder), .full)
    try Migrations.main.apply(to: database)
    return database
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
