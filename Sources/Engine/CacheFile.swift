import Base
import Policy
import Store
import Vault

/// `cache.db`, opened when first needed.
final class CacheFile {
  let database: Database
  var contacts: ContactTable { ContactTable(database) }
  var datasets: DatasetTable { DatasetTable(database) }

  init(_ database: Database) { self.database = database }
}

extension Engine {
  /// Use the cache; when it turns out damaged, once more on a fresh one: the server has all of it.
  func withCache<Result>(
    _ body: (CacheFile) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let file = try cache()
    do throws(Failure) { return try body(file) } catch  where error.code == .storageDamaged {
      return try body(try replaceCache())
    }
  }

  func cache() throws(Failure) -> CacheFile {
    if let cacheFile {
      if cacheFile.database.isCurrent { return cacheFile }
      // What is on its way goes on from rows that are not in the new one.
      pullAnew()
    }
    closeCache()
    let folder = configuration.dataFolder
    let wasThere = try meta.int(.hasCache) != nil
    let isLost = wasThere && !Files.holdsAnything(Files.cachePath(in: folder))
    do throws(Failure) {
      let opened = CacheFile(try Files.openCache(in: folder))
      cacheFile = opened
      if isLost { try tellRecovered() }
      if !wasThere { try meta.set(.hasCache, .int(1)) }
      return opened
    } catch  where error.code == .storageDamaged || error.code == .storageNewer {
      return try replaceCache()
    }
  }

  func closeCache() {
    cacheFile?.database.close()
    cacheFile = nil
    contactIndex = nil
  }

  func replaceCache() throws(Failure) -> CacheFile {
    let damaged = cacheFile?.database
    closeCache()
    let fresh = try Files.replaceCache(damaged, in: configuration.dataFolder)
    let opened = CacheFile(fresh.database)
    cacheFile = opened
    pullAnew()
    if fresh.isReplaced { try tellRecovered() }
    return opened
  }

  private func tellRecovered() throws(Failure) {
    Log.line(.warning, "the cache was lost; it is fetched from the server again")
    pullAnew()
    guard ring.keys != nil else { return }
    try notify(
      [
        "type": "storage_recovered", "file": "cache.db", "salvaged": 0, "lost": 0,
        "session": false,
        "message": [
          "code": .string(MessageCode.cacheRecovered.rawValue),
          "text": words(MessageCode.cacheRecovered.rawValue),
        ],
      ], owner: nil)
  }

  // MARK: Erasing

  /// Forget everything cached: its key is gone or going, so a failure here leaves nothing readable.
  func eraseCache() {
    contactIndex = nil
    pulls = PullState()
    do throws(Failure) {
      try withCache { (cache) throws(Failure) in
        try cache.database.transaction { () throws(Failure) in
          try cache.contacts.removeAll()
          try cache.datasets.removeAll()
        }
        try cache.database.flush()
      }
      try Files.removeDamagedCache(in: configuration.dataFolder)
    } catch {
      Log.line(.warning, "the cache could not be emptied: \(error.code.rawValue)")
    }
  }

  /// Erase what is cached of an organisation. Whoever records why does it afterwards: then there is no
  /// moment, not even after a loss of power, in which an end is known and the data still there.
  func eraseCache(of org: [UInt8]) throws(Failure) {
    try withCache { (cache) throws(Failure) in
      let removed = try cache.database.transaction { () throws(Failure) in
        try cache.contacts.removeAll(of: org) + cache.datasets.removeAll(of: org)
      }
      if removed > 0 {
        contactIndex = nil
        pulls.current = nil
        try cache.database.flush()
      }
    }
    try Files.removeDamagedCache(in: configuration.dataFolder)
  }

  // MARK: Names and seals

  func cacheTag(_ org: UUID, _ open: OpenSession, _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("cache", open.owner, org.bytes)
  }

  /// A contact of an organisation. (The same id in another one is another row: a screen of the one
  /// never shows what the other one knows.)
  func contactTag(_ id: UUID, of org: [UInt8], _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("contact", org, id.bytes)
  }

  func contactContext(_ row: [UInt8], _ open: OpenSession) -> SealContext {
    SealContext(table: "contact", row: row, owner: open.owner, column: "sealed")
  }

  func datasetContext(_ org: [UInt8], _ open: OpenSession, _ column: StaticCString) -> SealContext {
    SealContext(table: "dataset", row: org, owner: open.owner, column: column)
  }
}
