import Base
import Policy
import Store
import Supabase
import Vault

/// `cache.db` while it is open.
final class CacheTables {
  let database: Database
  var contacts: ContactTable { ContactTable(database) }
  var blocks: ContactBlockTable { ContactBlockTable(database) }
  var datasets: DatasetTable { DatasetTable(database) }

  init(_ database: Database) { self.database = database }
}

/// The cache file: copies of server data. It is opened at first use, replaced when damaged, and
/// erased, whole or for one organisation, when its data may no longer be read. This class also owns
/// the search index, which mirrors the file.
final class CacheFile {
  private let core: Core
  private let notices: Notices
  private let pulls: PullState
  private var tables: CacheTables?
  private(set) var index: ContactIndex?

  init(_ core: Core, _ notices: Notices, _ pulls: PullState) {
    self.core = core
    self.notices = notices
    self.pulls = pulls
  }

  private var folder: String { core.configuration.dataFolder }

  // MARK: Opening

  /// Use the cache. If it is damaged, use a fresh one: the server has all of the data. The file itself tells, because
  /// `body` may find that the main file is damaged.
  func use<Result>(
    _ body: (CacheTables) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let opened = try open()
    do throws(Failure) { return try body(opened) } catch  where opened.database.isDamaged {
      return try body(try replace(opened))
    }
  }

  /// The fresh file in place of a damaged one. A use within the use may have begun it.
  @inline(never)
  private func replace(_ damaged: CacheTables) throws(Failure) -> CacheTables {
    tables === damaged ? try replace() : try open()
  }

  func open() throws(Failure) -> CacheTables {
    if let tables {
      if tables.database.isCurrent { return tables }
      // Another process replaced the file: restart a running pull, because its earlier rows are
      // gone.
      pulls.restart()
    }
    close()
    let wasThere = try core.meta.int(.hasCache) != nil
    let isLost = wasThere && !DataFolder.holdsAnything(DataFolder.cachePath(in: folder))
    let opened: CacheTables
    do throws(Failure) {
      opened = use(try DataFolder.openCache(in: folder))
    } catch  where error.code == .storageDamaged || error.code == .storageNewer {
      return try replace()
    }
    if isLost { try emitRecovered() }
    if !wasThere { try core.meta.set(.hasCache, .int(1)) }
    return opened
  }

  private func use(_ database: Database) -> CacheTables {
    database.call = core.reads
    let opened = CacheTables(database)
    tables = opened
    return opened
  }

  func close() {
    tables?.database.close()
    tables = nil
    dropIndex()
  }

  /// See `Database.closeCopy`.
  func closeCopy() { tables?.database.closeCopy() }

  /// Close a connection whose disk failed; the next use opens a new one.
  func closeIfSuspect() {
    if let tables, tables.database.isSuspect { close() }
  }

  /// Set the damaged file aside and begin a fresh one.
  @discardableResult
  func replace() throws(Failure) -> CacheTables {
    let damaged = tables?.database
    close()
    let fresh = try DataFolder.replaceCache(damaged, in: folder)
    let opened = use(fresh.database)
    pulls.restart()
    if fresh.isReplaced { try emitRecovered() }
    return opened
  }

  private func emitRecovered() throws(Failure) {
    Log.line(.warning, "the cache was lost; it is fetched from the server again")
    pulls.restart()
    guard core.keyRing.keys != nil else { return }
    try notices.add(
      "storage_recovered", reason: MessageCode.cacheRecovered.rawValue,
      ["file": "cache.db", "carried": 0, "unreadable": true, "session": false], owner: nil)
  }

  // MARK: The index

  func use(_ index: ContactIndex) { self.index = index }

  func dropIndex() { index = nil }

  // MARK: Erasing

  /// Erase everything cached. A failure is only logged: the cache's key is erased as well, so nothing
  /// stays readable.
  func erase() {
    dropIndex()
    pulls.forgetAll()
    do throws(Failure) {
      try use { (cache) throws(Failure) in
        try cache.database.transaction { () throws(Failure) in
          try cache.contacts.removeAll()
          try cache.blocks.removeAll()
          try cache.datasets.removeAll()
        }
        try cache.database.flush()
      }
      try DataFolder.removeDamagedCache(in: folder)
    } catch {
      Log.warning("the cache could not be erased", error)
    }
  }

  /// Erase what is cached of organisations, and what an earlier call could not erase. What cannot be
  /// erased now is owed: it is no longer shown, and the next call tries again. Called in the
  /// transaction that stores the reason.
  func eraseOrOwe(_ orgs: [[UInt8]]) throws(Failure) {
    let owed = try core.meta.blob(.owedCacheErasures) ?? []
    let known = stride(from: 0, to: owed.count - 15, by: 16).map { Array(owed[$0..<$0 + 16]) }
    let all = (orgs + known).ordered { $0.lexicographicallyPrecedes($1) }
    let each = all.indices.filter { $0 == 0 || all[$0] != all[$0 - 1] }.map { all[$0] }
    guard !each.isEmpty else { return }
    var left: [UInt8] = []
    do throws(Failure) { try erase(each) } catch {
      Log.warning("an organisation's cache could not be erased", error)
      left = each.flatMap { $0 }
    }
    if left != owed { try core.meta.set(.owedCacheErasures, .blob(left)) }
  }

  /// Erase what is cached of organisations. The caller commits the reason afterwards, so no crash leaves
  /// a stored end with its data still cached.
  func erase(_ orgs: [[UInt8]]) throws(Failure) {
    try use { (cache) throws(Failure) in
      let removed = try cache.database.transaction { () throws(Failure) in
        var removed = 0
        for org in orgs {
          // The user's own rows of every kind, and the contacts, whose set is named as the organisation.
          for set in try cache.datasets.sets(in: org) + [org] {
            removed += try cache.contacts.removeAll(of: set)
            removed += try cache.blocks.removeAll(of: set)
          }
          removed += try cache.datasets.removeAll(in: org)
        }
        return removed
      }
      if removed > 0 {
        dropIndex()
        // Also those of other organisations, which nothing else would begin again.
        pulls.restart()
      }
      // Also when an earlier call has erased the rows, and failed here.
      try cache.database.flush()
    }
    try DataFolder.removeDamagedCache(in: folder)
  }
}

/// The keyed tags and seal contexts of cached rows.
enum CacheNames {
  /// nil: no organisation.
  static func org(_ org: UUID?, _ session: OpenSession, _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("cache", session.owner, org?.bytes ?? [])
  }

  /// The user's own rows of a kind. nil: no organisation.
  static func own(
    _ kind: String, _ org: UUID?, _ owner: [UInt8], _ keys: KeyRing.Keys
  ) -> [UInt8] {
    keys.lookup.tag("own", owner, org?.bytes ?? [], Array(kind.utf8))
  }

  /// A contact of an organisation. The same id in another organisation is another row, so neither
  /// shows the other's data.
  static func contact(_ id: UUID, of org: [UInt8], _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("contact", org, id.bytes)
  }

  /// The set of rows.
  static func set(
    _ source: RowSource, _ session: OpenSession, _ keys: KeyRing.Keys
  ) -> [UInt8] {
    source.kind.map { own($0.name, source.org, session.owner, keys) }
      ?? org(source.org, session, keys)
  }

  /// A row of the set. An own row has the tag of its queued item, so that both have one place in a list.
  static func row(
    _ id: UUID, _ source: RowSource, of set: [UInt8], _ session: OpenSession, _ keys: KeyRing.Keys
  ) -> [UInt8] {
    source.kind == nil ? contact(id, of: set, keys) : keys.itemTag(id, session.owner)
  }

  static func rowContext(
    _ row: [UInt8], of org: [UInt8], _ session: OpenSession
  ) -> SealContext {
    SealContext(table: "contact", row: row, owner: session.owner, column: "sealed", org: org)
  }

  static func blockContext(
    _ number: Int64, of org: [UInt8], _ session: OpenSession
  ) -> SealContext {
    SealContext(
      table: "contact_block", row: [UInt8](bigEndian: UInt64(bitPattern: number)),
      owner: session.owner, column: "sealed", org: org)
  }

  static func datasetContext(
    _ org: [UInt8], _ session: OpenSession, _ column: StaticCString
  ) -> SealContext {
    SealContext(table: "dataset", owner: session.owner, column: column, org: org)
  }
}
