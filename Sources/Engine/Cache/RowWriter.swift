import Base
import Store
import Supabase
import Vault

/// Stores the rows of one page, in its transaction. Contacts also with the blocks of the search index that they
/// belong to: each of these is opened and sealed once.
final class RowWriter {
  private struct Change {
    let number: Int64
    let tag: UUID
    /// The texts to add; nil: none.
    var texts: (name: String, municipality: String)?
    /// The block has no texts of this row yet.
    let isNew: Bool
  }

  private let core: Core
  private let session: OpenSession
  private let keys: KeyRing.Keys
  private let source: RowSource
  private let org: [UInt8]
  private let tables: CacheTables
  private var nextNumber: Int64?
  private var changes: [Change] = []

  init(
    _ core: Core, _ session: OpenSession, _ source: RowSource, of org: [UInt8],
    _ tables: CacheTables
  ) throws(Failure) {
    self.source = source
    self.core = core
    self.session = session
    self.org = org
    self.tables = tables
    keys = try core.keys()
  }

  /// Store a row, or remove a deleted one; counted in `pull`.
  func take(_ row: PulledRow, round: Int64, _ pull: inout RowPull) throws(Failure) {
    let tagBytes = CacheNames.row(row.id, source, of: org, session, keys)
    guard let tag = UUID(bytes: tagBytes) else { return }
    let place = try tables.contacts.place(of: tagBytes, in: org, version: row.updatedAt)
    // A replica may lag behind what an answer has proved. What a reconcile reads holds in any case.
    if let place, place.isNewer, !pull.hasReadAll { return }
    guard let text = row.text else {
      guard let place else { return }
      if source.kind == nil {
        try tables.contacts.remove(number: place.number)
        note(Change(number: place.number, tag: tag, texts: nil, isNew: false))
      } else {
        try tables.contacts.hide(number: place.number, version: row.updatedAt, round: round)
      }
      pull.removed += 1
      return
    }
    // Most rows of the overlap are known.
    if let place, place.isCurrent, !pull.isWhole {
      return try tables.contacts.confirm(place, round: round)
    }
    // Keep the text alive: it is zeroed when it is released.
    defer { withExtendedLifetime(text) {} }
    let sealed = try session.cacheKey.seal(
      text.bytes, CacheNames.rowContext(tagBytes, of: org, session))
    let number: Int64
    if let place {
      number = place.number
      try tables.contacts.replace(
        number: number, version: row.updatedAt, round: round, listedMS: row.listedMS,
        sealed: sealed)
    } else {
      number = try takeNumber()
      try tables.contacts.add(
        number: number, row: tagBytes, org: org, version: row.updatedAt, round: round,
        listedMS: row.listedMS, sealed: sealed)
    }
    note(
      Change(
        number: number, tag: tag, texts: core.indexedTexts(row.name, row.municipality),
        isNew: place == nil))
    pull.rows += 1
  }

  /// Only contacts are searched.
  private func note(_ change: Change) {
    if source.kind == nil { changes.append(change) }
  }

  private func takeNumber() throws(Failure) -> Int64 {
    var number = nextNumber ?? 0
    if nextNumber == nil { number = try tables.contacts.nextNumber(isListed: source.kind != nil) }
    nextNumber = number + 1
    return number
  }

  /// Remove the rows that a complete reconcile did not list; how many.
  func removeUnmet(round: Int64) throws(Failure) -> Int {
    try tables.contacts.removeUnmet(of: org, round: round) { (number, row) in
      guard let tag = UUID(bytes: row) else { return }
      note(Change(number: number, tag: tag, texts: nil, isNew: false))
    }
  }

  /// Rewrite the blocks of all changed rows; to be called once, before the commit.
  func writeBlocks() throws(Failure) {
    let blocks = ContactBlocks(core: core, session: session, org: org, tables: tables)
    var next = changes.map { ContactBlockTable.block(of: $0.number) }.min()
    while let number = next {
      next = nil
      // Before it is sealed, the draft and the texts are gone: together they are as large as the page.
      try blocks.write(try changed(number, &next, blocks))
    }
  }

  /// The block with the changes of its rows. `next`: the number of the next block that has any. If the
  /// block was missing or could not be used, this one lacks rows; the next search notices that, and makes
  /// the blocks again.
  private func changed(
    _ number: Int64, _ next: inout Int64?, _ blocks: ContactBlocks
  ) throws(Failure) -> ContactIndex.Change {
    let block = try blocks.read(number)
    var places: [Int] = []
    var size = 0
    for (place, change) in changes.enumerated() {
      let its = ContactBlockTable.block(of: change.number)
      if its > number, its < next ?? its + 1 { next = its }
      guard its == number else { continue }
      places.append(place)
      if let texts = change.texts {
        size += 2 * texts.name.utf8.count + texts.municipality.utf8.count
      }
    }
    var draft = ContactBlockDraft(block, adding: size)
    for place in places {
      let change = changes[place]
      if !change.isNew { draft.remove(change.tag) }
      if let texts = change.texts {
        draft.add(change.tag, name: texts.name, municipality: texts.municipality)
      }
      changes[place].texts = nil
    }
    return try blocks.made(number, draft)
  }
}
