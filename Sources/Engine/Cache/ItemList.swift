import Base
import Policy
import Store
import Supabase
import Vault

/// `item_list`: the user's own items of a kind in the place where they work, newest first, stored and queued in
/// one list.
///
/// Both tables have an index by (time, tag), and a page is merged from the next rows of both, so its cost depends
/// on neither's length. What is in both is shown as the queue has it: a change over the stored row, an item
/// that was just stored. The position of a page's end is a time and a tag, which outlast a restart.
struct ItemList: Rules {
  let parts: Parts

  /// What is listed, and for whom.
  private struct Subject {
    let kind: QueueKind
    let rows: OwnRows
    let session: OpenSession
    let org: UUID?
    /// The tag of the set of rows, and of the queue's list.
    let set: [UInt8]
  }

  private enum Entry {
    case queued(QueueRow)
    case stored(ListPlace, sealed: [UInt8])

    var place: ListPlace {
      switch self {
      case .queued(let row): ListPlace(ms: row.listedMS ?? 0, row: row.item)
      case .stored(let place, _): place
      }
    }
  }

  func list(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ItemList.fields)
    let kind = try core.configuration.backend.queueKind(in: fields)
    guard let rows = kind.own else {
      throw Failure(
        .configNotConfigured, "the kind has no \"own\" in the configuration", field: "/kind")
    }
    let limit = Int(try fields.integer(ifPresent: "limit", in: 1...200) ?? 50)
    let fromMS = try fields.integer(ifPresent: "from_ms", in: Fields.safe) ?? .min
    let toMS = try fields.integer(ifPresent: "to_ms", in: Fields.safe)
    var place = ListPlace(ms: toMS ?? .max, row: [])
    if let after = try ItemList.readPlace(fields), place.precedes(after) { place = after }
    let (session, org) = try decider.requirePlace()
    let set = CacheNames.own(kind.name, org, session.owner, try core.keys())
    let subject = Subject(kind: kind, rows: rows, session: session, org: org, set: set)
    return try cache.use { (tables) throws(Failure) in
      let asOfMS = try tables.datasets.read(.rows, of: set)?.asOfMS
      let (items, next) = try page(subject, tables, from: place, fromMS: fromMS, limit: limit)
      let hasSome = try tables.contacts.hasRows(of: set)
      var banners = try presenter.dataBanners(asOfMS: asOfMS, hasSome: hasSome)
      banners.isUnsent = try core.queue.isListed(in: set)
      // Another process stores a row in the cache before its item leaves the queue.
      try core.database.requireUnchanged()
      return [
        "items": items, "next": JSON(next.map { ItemList.text($0) }), "as_of_ms": JSON(asOfMS),
        "banners": presenter.banners(banners, asOfMS: asOfMS),
      ]
    }
  }

  private static var fields: [StaticCString] { ["kind", "after", "limit", "from_ms", "to_ms"] }

  // MARK: A page

  private func page(
    _ subject: Subject, _ tables: CacheTables, from start: ListPlace, fromMS: Int64, limit: Int
  ) throws(Failure) -> (items: JSON, next: ListPlace?) {
    let items = JSON.array([])
    var place = start
    // Again where rows were left out: the queue has them elsewhere in the list.
    while items.count < limit {
      let wanted = limit - items.count
      let queued = try core.queue.listed(
        in: subject.set, before: place, fromMS: fromMS, limit: wanted)
      let stored = try tables.contacts.listed(
        of: subject.set, before: place, fromMS: fromMS, limit: wanted)
      let entries = ItemList.merged(queued, stored)
      let waiting = try report.waitingForParked(queued, of: subject.session.owner)
      for entry in entries.prefix(wanted) {
        place = entry.place
        if let item = try json(entry, subject, waiting) { items.append(item) }
      }
      if entries.count < wanted { return (items, nil) }
    }
    return (items, place)
  }

  /// Both lists in one. Of one place, the queue's row comes first.
  private static func merged(
    _ queued: [QueueRow], _ stored: [(place: ListPlace, sealed: [UInt8])]
  ) -> [Entry] {
    var all = queued.map { Entry.queued($0) }
    all += stored.map { Entry.stored($0.place, sealed: $0.sealed) }
    return all.ordered { $0.place.precedes($1.place) }
  }

  // MARK: An item

  /// An item as the host sees it; nil: a stored one that the queue shows, or that cannot be read.
  private func json(
    _ entry: Entry, _ subject: Subject, _ waitingForParked: [Int64]
  ) throws(Failure) -> JSON? {
    switch entry {
    case .queued(let row): return try json(row, subject, waitingForParked)
    case .stored(let place, let sealed):
      if try core.queue.contains(place.row, in: subject.set) { return nil }
      let session = subject.session
      let json = try session.cacheKey.openJSON(
        sealed, CacheNames.rowContext(place.row, of: subject.set, session))
      guard let row = OwnRow(json, subject.rows) else { return nil }
      return [
        "id": .uuid(row.id), "kind": .string(subject.kind.name), "state": "stored",
        "payload": row.values, "occurred_at_ms": .int(place.ms), "operation": .null,
        "reason": .null, "conflict": .null,
      ]
    }
  }

  private func json(
    _ row: QueueRow, _ subject: Subject, _ waitingForParked: [Int64]
  ) throws(Failure) -> JSON {
    let item = try row.read(subject.session.queueKey)
    let shown = try report.describe(
      row, item, subject.session, waitingForParked)
    var payload = shown["payload"] ?? [:]
    if let item, let base = item.stored {
      // What others have changed since shows beside the user's change.
      let stored = try ownRows.find(item.id, subject.kind, subject.org, subject.session)
      payload = subject.rows.kept(of: (stored?.values ?? base.row).laidOver(by: item.payload))
    }
    return [
      "id": shown["id"] ?? .null, "kind": .string(subject.kind.name),
      "state": .string(item.map { ItemList.state(of: row, $0) } ?? row.state.word),
      "payload": payload, "occurred_at_ms": JSON(row.listedMS),
      "operation": shown["operation"] ?? .null, "reason": shown["reason"] ?? .null,
      "conflict": shown["conflict"] ?? .null,
    ]
  }

  /// What the list says of a queued item: what it does to a stored row, unless it needs its user.
  private static func state(of row: QueueRow, _ item: QueueItem) -> String {
    switch (row.state, item.operation) {
    case (.parked, _): row.state.word
    case (_, .change): "changing"
    case (_, .delete): "deleting"
    case (_, .insert): item.isCancelled ? "deleting" : row.state.word
    }
  }

  // MARK: The end of a page

  private static func text(_ place: ListPlace) -> String {
    ISO8601.format(ms: place.ms) + "/" + (UUID(bytes: place.row)?.text ?? "")
  }

  private static func readPlace(_ fields: Fields) throws(Failure) -> ListPlace? {
    guard let text = try fields.string(ifPresent: "after", maximum: 128) else { return nil }
    let parts = text.split(separator: "/")
    guard parts.count == 2, let ms = ISO8601.parse(String(parts[0])),
      let tag = JSON.string(String(parts[1])).uuid
    else { throw fields.invalid("after", "the \"next\" of a page is expected") }
    return ListPlace(ms: ms, row: tag.bytes)
  }
}
