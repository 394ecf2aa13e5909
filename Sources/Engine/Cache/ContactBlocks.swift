import Base
import Store
import Supabase
import Vault

/// Reads and writes the sealed blocks of an organisation's search index.
///
/// **Reading.** A search needs all blocks of the organisation. It keeps the opened ones, and after a
/// pull, of this process or another, it opens those that have another stamp. When a block cannot be
/// used (it is damaged, belongs elsewhere, has another form or other columns), or the blocks do not have
/// as many rows as the table, all of them are made again from the rows.
///
/// **Writing.** `RowWriter` gathers what a page of a pull changes and rewrites each block once, in the
/// page's transaction.
struct ContactBlocks {
  let core: Core
  let session: OpenSession
  let org: [UInt8]
  let tables: CacheTables

  /// The columns that may be searched, as a block names them.
  private var columns: UInt8 {
    var result: UInt8 = 0
    if core.isIndexed("name") { result |= 1 }
    if core.isIndexed("municipality") { result |= 2 }
    return result
  }

  // MARK: One block

  /// A stored block; nil when there is none, or it cannot be used.
  func read(_ number: Int64) throws(Failure) -> ContactBlock? {
    guard let sealed = try tables.blocks.find(number, of: org),
      let plain = try session.cacheKey.open(
        sealed, CacheNames.blockContext(number, of: org, session))
    else { return nil }
    return ContactBlock(plain, columns: columns)
  }

  func made(
    _ number: Int64, _ draft: ContactBlockDraft
  ) throws(Failure) -> ContactIndex.Change {
    ContactIndex.Change(
      number: number, stamp: Int64(bitPattern: Random.word()),
      block: try draft.made(columns: columns))
  }

  /// Store a block, or remove it when nothing is in it.
  func write(_ change: ContactIndex.Change) throws(Failure) {
    guard let block = change.block else { return try tables.blocks.remove(change.number, of: org) }
    let context = CacheNames.blockContext(change.number, of: org, session)
    try tables.blocks.put(
      change.number, of: org, stamp: change.stamp,
      sealed: try session.cacheKey.seal(block.sealable, context))
  }

  // MARK: All blocks

  /// The index of the file's present version. `known`: the one of an earlier version.
  func index(_ known: ContactIndex?) throws(Failure) -> ContactIndex {
    let version = tables.database.version
    let known = known.flatMap { $0.org == org ? $0 : nil }
    if let known, let version, known.version == version { return known }
    let index = ContactIndex(org: org, version: version)
    var rows: Int?
    var isWhole = true
    try tables.blocks.each(of: org) { (number, stamp) throws(Failure) in
      // The first statement is still open, so this one counts the rows that belong to the blocks.
      if rows == nil { rows = try tables.contacts.count(of: org) }
      var block = known?.block(number, stamp: stamp)
      if block == nil { block = try read(number) }
      if block == nil { isWhole = false }
      index.append(ContactIndex.Change(number: number, stamp: stamp, block: block))
    }
    if rows == nil { rows = try tables.contacts.count(of: org) }
    return isWhole && index.count == rows ? index : try rebuilt()
  }

  /// Make all blocks from the rows. If they cannot be stored, they are used from memory.
  func rebuilt() throws(Failure) -> ContactIndex {
    let version = tables.database.version
    let index = ContactIndex(org: org, version: version)
    var changes: [ContactIndex.Change] = []
    var draft = ContactBlockDraft()
    var number: Int64 = -1
    func end() throws(Failure) {
      guard number >= 0 else { return }
      let change = try made(number, draft)
      index.append(change)
      changes.append(change)
    }
    try tables.contacts.each(of: org) { (row, tagBytes, sealed) throws(Failure) in
      guard let tag = UUID(bytes: tagBytes) else { return }
      if ContactBlockTable.block(of: row) != number {
        try end()
        number = ContactBlockTable.block(of: row)
        draft = ContactBlockDraft()
      }
      let context = CacheNames.rowContext(tagBytes, of: org, session)
      if let json = try session.cacheKey.openJSON(sealed, context) {
        let (name, municipality) = core.indexedTexts(
          json.string("name") ?? "", json.string("municipality") ?? "")
        draft.add(tag, name: name, municipality: municipality)
      } else {
        draft.addUnreadable(tag)
      }
    }
    try end()
    do throws(Failure) {
      try tables.database.transaction { () throws(Failure) in
        // Another process may have changed the rows since they were read.
        guard tables.database.lastCommit == version else { return }
        _ = try tables.blocks.removeAll(of: org)
        for change in changes { try write(change) }
      }
    } catch  where error.code != .storageDamaged && error.code != .memoryExhausted {
      Log.warning("the search index could not be stored", error)
    }
    return index
  }
}

extension Core {
  /// Whether a column's text may be searched: it is cached, or was.
  func isIndexed(_ column: String) -> Bool { !configuration.backend.needsNetwork.contains(column) }

  /// The texts by which a contact is found; empty for columns that may not be cached.
  func indexedTexts(_ name: String, _ municipality: String) -> (name: String, municipality: String)
  {
    (
      isIndexed("name") ? Core.indexed(name) : "",
      isIndexed("municipality") ? Core.indexed(municipality) : ""
    )
  }

  /// The first 256 bytes, as many as a query may have. So a block of 250 contacts stays small, whatever the
  /// server sends.
  private static func indexed(_ text: String) -> String {
    guard text.utf8.count > 256 else { return text }
    var start = Array(text.utf8.prefix(257))
    // Not in the middle of a character.
    while let last = start.popLast(), last & 0xC0 == 0x80 {}
    return String(decoding: start, as: UTF8.self)
  }
}
