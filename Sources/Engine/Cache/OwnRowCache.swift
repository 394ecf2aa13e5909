import Base
import Policy
import Store
import Supabase
import Vault

/// A stored row of the user, as the cache has it.
struct OwnRow {
  let id: UUID
  /// The columns of `OwnRows.columns`; a row that the library has stored may lack some.
  let values: JSON
  /// `updated_at` as the server wrote it; nil: not known yet.
  let version: String?

  init(id: UUID, values: JSON, version: String?) {
    self.id = id
    self.values = values
    self.version = version
  }

  /// Reads a cached text, without the columns that are not kept any more.
  init?(_ json: JSON?, _ own: OwnRows) {
    guard let json, let id = json.uuid("id") else { return nil }
    self.id = id
    version = json.string("updated_at")
    json.keepMembers(own.columns)
    values = json
  }

  /// The form in the cache.
  func json(_ own: OwnRows) -> JSON {
    let json = values.shallowCopy
    json.keepMembers(own.columns)
    json.set("id", .uuid(id))
    if let version { json.set("updated_at", .string(version)) }
    return json
  }
}

extension OwnRows {
  /// The time by which a row with these values is listed; nil: they have none.
  func listedMS(_ values: JSON, version: String?) -> Int64? {
    (time == "updated_at" ? version : values[member: time]?.string).flatMap { ISO8601.parse($0) }
  }
}

/// The user's own rows in the cache, for the parts that correct them.
///
/// `RowPuller` brings the rows. What this library stores or changes on the server is put here at once, just below its
/// version: so the next pull, and the next reconcile, replaces it by the server's form of it, and no pull by an older
/// one. The row is written before its item leaves the queue, and hidden as long as both are there.
struct OwnRowCache: Rules {
  let parts: Parts

  /// The row; nil when it is not cached, or cannot be read.
  func find(
    _ id: UUID, _ kind: QueueKind, _ org: UUID?, _ session: OpenSession
  ) throws(Failure) -> OwnRow? {
    guard let own = kind.own else { return nil }
    let keys = try core.keys()
    let set = CacheNames.own(kind.name, org, session.owner, keys)
    let tag = keys.itemTag(id, session.owner)
    return try cache.use { (tables) throws(Failure) in
      guard let sealed = try tables.contacts.find(row: tag, in: set) else { return nil }
      return OwnRow(
        try session.cacheKey.openJSON(sealed, CacheNames.rowContext(tag, of: set, session)), own)
    }
  }

  /// Show rows that were stored or changed. One that is larger than the cache takes from a pull is hidden. What a
  /// pull has brought stays if it is newer, as it is for every insert of which nobody knows the version.
  func put(
    _ rows: [OwnRow], _ kind: QueueKind, _ org: UUID?, _ session: OpenSession, areInserts: Bool,
    _ now: Instant
  ) throws(Failure) {
    guard let own = kind.own, !rows.isEmpty else { return }
    let keys = try core.keys()
    let set = CacheNames.own(kind.name, org, session.owner, keys)
    let nowMS = try core.serverMS(now)
    try change(set, in: CacheNames.org(org, session, keys)) { (table, round) throws(Failure) in
      for row in rows {
        let text = try row.json(own).text()
        defer { withExtendedLifetime(text) {} }
        let tag = keys.itemTag(row.id, session.owner)
        let version = row.version ?? (areInserts ? "" : nil)
        let place = try table.place(of: tag, in: set, version: version)
        if let place, place.isNewer { continue }
        guard text.count <= OwnRows.maxBytes else {
          if let place { try table.remove(number: place.number) }
          continue
        }
        let sealed = try session.cacheKey.seal(
          text.bytes, CacheNames.rowContext(tag, of: set, session))
        let listedMS = own.listedMS(row.values, version: row.version) ?? nowMS
        let below = String(row.version?.dropLast() ?? "")
        if let place {
          try table.replace(
            number: place.number, version: below, round: round, listedMS: listedMS, sealed: sealed)
        } else {
          try table.add(
            number: try table.nextNumber(isListed: true), row: tag, org: set, version: below,
            round: round, listedMS: listedMS, sealed: sealed)
        }
      }
    }
  }

  /// Hide rows that were deleted. `version`: the last one that is known; "": none.
  func remove(
    _ deleted: [(id: UUID, version: String)], _ kind: QueueKind, _ org: UUID?,
    _ session: OpenSession
  ) throws(Failure) {
    guard kind.own != nil, !deleted.isEmpty else { return }
    let keys = try core.keys()
    let set = CacheNames.own(kind.name, org, session.owner, keys)
    try change(set, in: CacheNames.org(org, session, keys)) { (table, round) throws(Failure) in
      for row in deleted {
        let tag = keys.itemTag(row.id, session.owner)
        guard let place = try table.place(of: tag, in: set, version: nil) else { continue }
        try table.hide(number: place.number, version: row.version, round: round)
      }
    }
  }

  /// Change the rows of a set in one transaction. They are of its current reconcile, which does not remove them.
  private func change(
    _ set: [UInt8], in place: [UInt8],
    _ body: (ContactTable, _ round: Int64) throws(Failure) -> Void
  ) throws(Failure) {
    try cache.use { (tables) throws(Failure) in
      try tables.database.transaction { () throws(Failure) in
        var round: Int64 = 0
        if let entry = try tables.datasets.read(.rows, of: set) {
          round = entry.round
        } else {
          try tables.datasets.write(.rows, of: set, in: place, DatasetTable.Entry())
        }
        try body(tables.contacts, round)
      }
    }
  }
}
