import Base
import Policy
import Store
import Supabase
import Vault

/// Takes items into the queue and lets the user change them: add, edit, cancel, retry.
final class ItemIntake {
  /// Memo of the last batch key: the next item usually has the same.
  private struct LastBatchKey {
    let lookup: Key
    let org: UUID?
    let kind: String
    let columns: [String]
    let key: [UInt8]
  }

  private let core: Core
  private let reserve: Reserve
  private let links: ItemLinks
  private let syncRuns: SyncRunReporter
  private let wakeTimer: WakeTimer
  private let decider: Decider
  private var lastBatchKey: LastBatchKey?

  init(
    _ core: Core, reserve: Reserve, links: ItemLinks, syncRuns: SyncRunReporter,
    wakeTimer: WakeTimer, decider: Decider
  ) {
    self.core = core
    self.reserve = reserve
    self.links = links
    self.syncRuns = syncRuns
    self.wakeTimer = wakeTimer
    self.decider = decider
  }

  // MARK: Adding

  func add(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(
      request,
      known: ["kind", "payload", "id", "depends_on", "occurred_at_ms", "org_id", "state"])
    // Adding only adds work: what was due stays due, so the wake-up is not computed again.
    let due = wakeTimer.knownDue()
    defer { wakeTimer.keepDue(due) }
    let (session, current) = try decider.requirePlace()
    let org = try readOrganisation(fields, session) ?? current
    _ = try ItemReport.readState(fields)
    let now = core.clock.now()
    let kind = try readKind(fields)
    let given = try readID(fields)
    let id = given ?? Random.uuid(at: now.wallMS)
    let payload = try PayloadReader.read(fields, kind, id: id, org: org, user: session.userID)
    let dependsOn = try readDependencies(fields, id)
    var time = try readTime(fields, now)
    // An item with an id of the host's may be added again, and must then be the same.
    if time == nil, given == nil, payload["occurred_at"] == nil,
      kind.columns.contains("occurred_at"), payload[member: "occurred_at"] == nil
    {
      time = try core.serverMS(now)
    }
    let item = QueueItem(
      id: id, kind: kind.name, org: org, payload: payload, dependsOn: dependsOn,
      occurredAtMS: time, hasUser: kind.hasUser)
    item.addTime(kind)
    try reserve.make()
    return try insert(item, kind, session, now)
  }

  /// Until the year 5138, the seconds since 1970 are a smaller number than this. As milliseconds it is
  /// March 1973.
  private static var leastMS: Int64 { 100_000_000_000 }

  /// A time in seconds would be stored as one in January 1970. A device whose clock has fallen back to
  /// 1970 may say so.
  private func readTime(_ fields: Fields, _ now: Instant) throws(Failure) -> Int64? {
    let time = try fields.integer(ifPresent: "occurred_at_ms", in: 0...Fields.safe.upperBound)
    if let time, time < ItemIntake.leastMS, now.wallMS >= ItemIntake.leastMS {
      throw fields.invalid(
        "occurred_at_ms",
        "milliseconds since 1970 are expected, at least 100000000000; this number looks like seconds"
      )
    }
    return time
  }

  private func readKind(_ fields: Fields) throws(Failure) -> QueueKind {
    let name = try fields.string("kind", maximum: 64)
    let backend = core.configuration.backend
    guard let kind = backend.kind(name) else {
      let advice = Suggestion.advice(
        name, among: backend.kinds.map { $0.name }, in: "backend.queue")
      throw Failure(.queueUnknownKind, "no such kind; " + advice, field: "/kind")
    }
    return kind
  }

  private func readID(_ fields: Fields) throws(Failure) -> UUID? {
    guard let value = fields.optional("id") else { return nil }
    guard let id = value.uuid else {
      throw Failure(.queueInvalidID, "a UUID is expected", field: "/id")
    }
    return id
  }

  /// An exported item goes back to its own organisation, if the user is a member of it.
  private func readOrganisation(
    _ fields: Fields, _ session: OpenSession
  ) throws(Failure) -> UUID? {
    guard fields.optional("org_id") != nil else { return nil }
    guard core.configuration.backend.hasOrganisations else {
      throw Failure(
        .configNotConfigured, "\"memberships\" is null in the configuration", field: "/org_id")
    }
    let id = try fields.uuid("org_id")
    guard session.membership(in: id) != nil else {
      throw Failure(.orgNotAMember, "no membership in this organisation", field: "/org_id")
    }
    return id
  }

  private func readDependencies(_ fields: Fields, _ id: UUID) throws(Failure) -> [UUID] {
    var result: [UUID] = []
    for (index, text) in (try fields.strings(ifPresent: "depends_on") ?? []).enumerated() {
      guard let parent = UUID(text), parent != id else {
        throw Failure(
          .queueUnknownDependency, "the id of another item is expected",
          field: "/depends_on/\(index)")
      }
      result.append(parent)
    }
    return result
  }

  private func insert(
    _ item: QueueItem, _ kind: QueueKind, _ session: OpenSession, _ now: Instant
  ) throws(Failure) -> JSON {
    let keys = try core.keys()
    let tag = keys.itemTag(item.id, session.owner)
    let (body, size) = try item.sealed(tag, session.owner, session.queueKey)
    return try core.database.transaction { () throws(Failure) in
      if let existing = try core.queue.find(tag) {
        try checkSame(item, existing, session)
        try core.queue.setCancelled(existing, false, session.queueKey)
        return ["id": .uuid(item.id), "state": .string(existing.state.word)]
      }
      try checkParents(of: item, session.owner, keys)
      let row = QueueRow()
      row.item = tag
      row.owner = session.owner
      row.org = keys.orgTag(item.org)
      row.batchKey = batchKey(item, kind, keys)
      row.createdMS = now.wallMS
      row.size = size
      row.body = body
      if try links.linkParents(of: item, kind, tag, session.owner, keys, accepted: false) {
        row.state = .waiting(.dependency)
      }
      _ = try core.queue.insert(row)
      return ["id": .uuid(item.id), "state": .string(row.state.word)]
    }
  }

  /// Refuse an id in `depends_on` that is not queued and not known as stored: an item that is added
  /// later would be sent in any order.
  private func checkParents(
    of item: QueueItem, _ owner: [UInt8], _ keys: KeyRing.Keys
  ) throws(Failure) {
    for (index, parent) in item.dependsOn.enumerated() {
      let tag = keys.itemTag(parent, owner)
      if try core.queue.contains(tag) { continue }
      guard try core.fate(of: tag)?.fate == .stored else {
        throw Failure(
          .queueUnknownDependency, "no such item; add it first", field: "/depends_on/\(index)")
      }
    }
  }

  /// Accept the same item again; refuse another one with its id.
  private func checkSame(
    _ item: QueueItem, _ existing: QueueRow, _ session: OpenSession
  ) throws(Failure) {
    let known = try existing.read(session.queueKey)
    known?.isRevised = false
    known?.isCancelled = false
    known?.mayBeCounted = false
    known?.hasUser = item.hasUser
    guard let known, known.json == item.json else {
      throw Failure(.queueIDTaken, "this id is queued with other content", field: "/id")
    }
  }

  private func batchKey(
    _ item: QueueItem, _ kind: QueueKind, _ keys: KeyRing.Keys
  ) -> [UInt8] {
    let columns = item.columns(kind, hasUser: kind.hasUser)
    if let last = lastBatchKey, last.lookup === keys.lookup, last.org == item.org,
      last.kind == item.kind, last.columns == columns
    {
      return last.key
    }
    let key = item.batchKey(columns, keys)
    lastBatchKey = LastBatchKey(
      lookup: keys.lookup, org: item.org, kind: item.kind, columns: columns, key: key)
    return key
  }

  // MARK: The user's control

  func edit(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "payload"])
    let session = try decider.requireSession()
    let keys = try core.keys()
    try reserve.make()
    return try core.database.transaction { () throws(Failure) in
      let row = try findIdle(fields, session)
      guard let item = try row.read(session.queueKey) else {
        throw Failure(.storageDamaged, "the item is unreadable; cancel it")
      }
      guard let kind = core.configuration.backend.kind(item.kind) else {
        throw Failure(.queueUnknownKind, "its kind is not in backend.queue", field: "/id")
      }
      if row.attempts > 0 { item.isRevised = true }
      item.isCancelled = false
      item.payload = try PayloadReader.read(
        fields, kind, accepted: item.payload, id: item.id, org: item.org, user: session.userID)
      item.hasUser = kind.hasUser
      item.addTime(kind)
      let (body, size) = try item.sealed(row.item, row.owner, session.queueKey)
      try core.queue.replace(
        row.item, batchKey: batchKey(item, kind, keys), body: body, size: size)
      let isHeld = row.state == .waiting(.organisation)
      if try links.linkParents(of: item, kind, row.item, session.owner, keys), !isHeld {
        try core.queue.transition(row.sequence, .waiting(.dependency))
      }
      let state = try core.queue.find(row.item)?.state ?? .pending
      return ["id": .uuid(item.id), "state": .string(state.word)]
    }
  }

  /// Remove an item. If the server may have it, it is only marked, and the server is asked first: it
  /// goes when the server does not have it, else it is parked. `force` removes it without asking.
  func cancel(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "force"])
    let session = try decider.requireSession()
    let isForced = try fields.bool(ifPresent: "force") ?? false
    return try core.database.transaction { () throws(Failure) in
      let row = try findIdle(fields, session)
      let id = JSON.string(try fields.uuid("id").text)
      let outcome = try self.outcome(row, session)
      if !isForced, outcome == .untold {
        try core.queue.setCancelled(row, true, session.queueKey)
        let state = try core.queue.find(row.item)?.state ?? .pending
        return ["id": id, "released": 0, "state": .string(state.word)]
      }
      try core.removeCancelled(row.item, core.clock.now(), mayBeStored: outcome != .known)
      let released = try core.queue.releaseDependents(of: row.item)
      try syncRuns.endIfDone(session.owner, core.clock.now())
      return ["id": id, "released": .int(released), "state": .null]
    }
  }

  /// Whether the server may have an item, and whether the user was told so.
  private enum Outcome { case known, untold, told }

  /// Of a parked item the user was told: the server refused it, or was asked. But it may have refused an
  /// edit and have the older payload, or not have answered the question about an item that was refused
  /// on the way.
  private func outcome(_ row: QueueRow, _ session: OpenSession) throws(Failure) -> Outcome {
    guard row.attempts > 0, let item = try row.read(session.queueKey) else { return .known }
    guard row.state == .parked else { return .untold }
    let rejection = try ParkReason.read(row, session.queueKey)
    if rejection?.string("code") == MessageCode.unknownOutcome.rawValue { return .told }
    return item.isRevised || item.mayBeCounted ? .untold : .known
  }

  /// Try one item again, or all that are parked.
  func retry(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    let session = try decider.requireSession()
    return try core.database.transaction { () throws(Failure) in
      guard fields.optional("id") != nil else {
        return ["retried": .int(try core.queue.retry(nil, of: session.owner))]
      }
      let row = try findIdle(fields, session)
      let isTakenBack = try core.queue.setCancelled(row, false, session.queueKey)
      let retried = try core.queue.retry(row.item, of: session.owner)
      return ["retried": .int(max(retried, isTakenBack ? 1 : 0))]
    }
  }

  /// An item that is in no request.
  private func findIdle(_ fields: Fields, _ session: OpenSession) throws(Failure) -> QueueRow {
    let row = try core.findItem(fields, session)
    guard row.state != .sending else {
      throw Failure(.queueInFlight, "the item is being sent; try again in a moment", field: "/id")
    }
    return row
  }
}

extension QueueTable {
  /// Mark an item as cancelled, or as no longer cancelled. Returns whether that changed it.
  @discardableResult
  func setCancelled(_ row: QueueRow, _ isCancelled: Bool, _ key: Key) throws(Failure) -> Bool {
    guard let item = try row.read(key), item.isCancelled != isCancelled else { return false }
    item.isCancelled = isCancelled
    let (body, size) = try item.sealed(row.item, row.owner, key, isAccepted: true)
    try replace(row.item, batchKey: row.batchKey, body: body, size: size)
    return true
  }
}

extension Core {
  /// The item with the `id` of a request, or the unreadable parked item with this substitute id.
  func findItem(_ fields: Fields, _ session: OpenSession) throws(Failure) -> QueueRow {
    let id = try fields.uuid("id")
    if let row = try queuedItem(id, session) { return row }
    throw Core.notQueued(try fate(of: keys().itemTag(id, session.owner))?.fate)
  }

  /// The failure of a call about an item that is not queued.
  static func notQueued(_ fate: StoredItemTable.Fate?) -> Failure {
    let message: StaticCString =
      switch fate {
      case .stored: "the item is not queued: the server has stored it"
      case .cancelled: "the item is not queued: it was cancelled"
      case .unknownOutcome:
        "the item is not queued: it was cancelled, and the server may have stored it"
      case nil: "no such item is queued, or known as stored or cancelled"
      }
    return Failure(.queueNotFound, message.string, field: "/id")
  }

  /// The queued item with this id; nil: there is none.
  func queuedItem(_ id: UUID, _ session: OpenSession) throws(Failure) -> QueueRow? {
    if let row = try queue.find(try keys().itemTag(id, session.owner)) { return row }
    guard let tag = try queue.findParked(id.bytes, of: session.owner) else { return nil }
    return try queue.find(tag)
  }
}
