public import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  func itemTag(_ id: UUID, _ owner: [UInt8], _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("item", owner, id.bytes)
  }

  // MARK: Adding

  public func queueAdd(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(
      request,
      known: ["kind", "payload", "id", "depends_on", "occurred_at_ms", "org_id", "state"])
    let isDue = isKnownDue()
    defer { if isDue { keepDue() } }
    let (open, current) = try requireOrganisation()
    let org = try readOrganisation(fields, open) ?? current.orgID
    _ = try state(fields)
    let now = clock.now()
    let kindName = try fields.string("kind", maximum: 64)
    guard let kind = configuration.backend.kind(kindName) else {
      let near = Suggestion.nearest(
        to: kindName, among: configuration.backend.kinds.map { $0.name })
      throw Failure(
        .queueUnknownKind,
        near.map { "no such kind; did you mean \"\($0)\"?" } ?? "no such kind", field: "/kind")
    }
    var id = Random.uuid(at: now.wallMS)
    if fields.optional("id") != nil {
      guard let given = fields.optional("id")?.uuid else {
        throw Failure(.queueInvalidID, "a UUID is expected", field: "/id")
      }
      id = given
    }
    let item = QueueItem(
      id: id, kind: kindName, org: org,
      payload: try readPayload(fields, kind, id, org, open),
      dependsOn: try readDependencies(fields, id),
      occurredAtMS: try fields.integer(
        ifPresent: "occurred_at_ms", in: 0...Fields.safe.upperBound))
    item.addTime(kind)
    return try insert(item, kind, open, now)
  }

  /// What was exported goes back to where it came from, if the user is still known there.
  private func readOrganisation(_ fields: Fields, _ open: OpenSession) throws(Failure) -> UUID? {
    guard fields.optional("org_id") != nil else { return nil }
    let id = try fields.uuid("org_id")
    guard open.memberships?.contains(where: { $0.orgID == id }) ?? false else {
      throw Failure(.orgNotAMember, "no membership in this organisation", field: "/org_id")
    }
    return id
  }

  private func insert(
    _ item: QueueItem, _ kind: QueueKind, _ open: OpenSession, _ now: Instant
  ) throws(Failure) -> JSON {
    let keys = try keys()
    let tag = itemTag(item.id, open.owner, keys)
    let text = try item.json.text()
    guard text.count <= QueueItem.maximumSize else {
      throw Failure(
        .queueItemTooLarge, "an item has at most \(QueueItem.maximumSize) bytes", field: "/payload",
        detail: ["size": .int(text.count)])
    }
    let body = try open.queueKey.seal(text.bytes, QueueItem.context(tag, open.owner, "body"))
    return try main.transaction { () throws(Failure) in
      if let existing = try queue.find(tag) {
        let known = try readItem(existing, open.queueKey)
        known?.isRevised = false
        guard let known, known.json == item.json else {
          throw Failure(.queueIDTaken, "this id is queued with other content", field: "/id")
        }
        return ["id": .uuid(item.id), "state": .string(existing.state.word)]
      }
      let row = QueueRow()
      row.item = tag
      row.owner = open.owner
      row.org = orgTag(item.org, keys)
      row.batchKey = batchKey(item, kind, keys)
      row.createdMS = now.wallMS
      row.size = Int64(text.count)
      row.body = body
      if try linkParents(of: item, kind, tag, open.owner, keys) {
        row.state = .waiting(.dependency)
      }
      _ = try queue.insert(row)
      return ["id": .uuid(item.id), "state": .string(row.state.word)]
    }
  }

  /// Items of one shape travel together: organisation, kind and columns.
  private func batchKey(_ item: QueueItem, _ kind: QueueKind, _ keys: KeyRing.Keys) -> [UInt8] {
    let columns = item.columns(kind)
    if let last = ring.lastShape, last.org == item.org, last.kind == item.kind,
      last.columns == columns
    {
      return last.tag
    }
    let tag = keys.lookup.tag(
      "shape", item.org.bytes, Array(item.kind.utf8), Array(columns.joined(separator: ",").utf8))
    ring.lastShape = Shape(org: item.org, kind: item.kind, columns: columns, tag: tag)
    return tag
  }

  /// Link the item to parents that are still queued: those it names, and those its columns refer to.
  /// True when there are any.
  func linkParents(
    of item: QueueItem, _ kind: QueueKind, _ tag: [UInt8], _ owner: [UInt8],
    _ keys: KeyRing.Keys
  ) throws(Failure) -> Bool {
    var parents = item.dependsOn
    for column in kind.references {
      if let id = item.payload[member: column]?.uuid { parents.append(id) }
    }
    var linked = false
    for parent in parents where parent != item.id {
      let parentTag = itemTag(parent, owner, keys)
      guard try queue.find(parentTag) != nil else { continue }
      if try dependencies.add(tag, on: parentTag) { linked = true }
    }
    return linked
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

  /// The payload, checked: known columns, and nobody else's organisation or name.
  private func readPayload(
    _ fields: Fields, _ kind: QueueKind, _ id: UUID, _ org: UUID, _ open: OpenSession
  ) throws(Failure) -> JSON {
    let payload = try fields.required("payload")
    guard payload.kind == .object else {
      throw Failure(.queueInvalidPayload, "an object is expected", field: "/payload")
    }
    let result = [:] as JSON
    for (name, value) in payload.members {
      let field = "/payload/" + JSONPointer.escape(name)
      let fixed: UUID? =
        name == "id" ? id : name == "org_id" ? org : name == "user_id" ? open.userID : nil
      if let fixed {
        guard value.uuid == fixed else {
          throw Failure(
            .queueInvalidPayload, "this is set by the session and can't differ", field: field)
        }
        continue
      }
      guard kind.columns.contains(name) else {
        let near = Suggestion.nearest(to: name, among: kind.columns)
        throw Failure(
          .queueUnknownColumn,
          near.map { "no such column; did you mean \"\($0)\"?" } ?? "no such column",
          field: field)
      }
      try checkNumbers(value, field)
      result.set(member: name, value)
    }
    return result
  }

  private func checkNumbers(_ value: JSON, _ field: String) throws(Failure) {
    if let number = value.int, !Fields.safe.contains(number) {
      throw Failure(.queueInvalidPayload, "an integer beyond 2^53 is not exact", field: field)
    }
    for (index, element) in value.elements.enumerated() {
      try checkNumbers(element, "\(field)/\(index)")
    }
    for (key, element) in value.members {
      try checkNumbers(element, field + "/" + JSONPointer.escape(key))
    }
  }

  // MARK: Reading

  func readItem(_ row: QueueRow, _ key: Key) throws(Failure) -> QueueItem? {
    try key.openJSON(row.body, QueueItem.context(row.item, row.owner, "body"))
      .flatMap { QueueItem($0) }
  }

  func countsJSON(_ counts: QueueCounts) -> JSON {
    [
      "pending": .int(counts.pending), "sending": .int(counts.sending),
      "waiting": .int(counts.waiting), "parked": .int(counts.parked),
    ]
  }

  private func state(_ fields: Fields) throws(Failure) -> ItemState.Code? {
    guard let word = try fields.string(ifPresent: "state", maximum: 16) else { return nil }
    guard let state = ItemState.Code(word: word) else {
      throw fields.invalid("state", "pending, sending, waiting or parked is expected")
    }
    return state
  }

  public func queueList(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["state", "after", "limit"])
    let open = try requireSession()
    let limit = try fields.integer(ifPresent: "limit", in: 1...500) ?? 100
    let rows = try queue.page(
      of: open.owner, state: try state(fields),
      after: try fields.integer(ifPresent: "after", in: 0...Fields.safe.upperBound) ?? 0,
      limit: Int(limit))
    var items: [JSON] = []
    for row in rows { items.append(try describe(row, open)) }
    return [
      "items": .array(items),
      "next": JSON(rows.count == Int(limit) ? rows.last?.sequence : nil),
      "counts": countsJSON(try queue.counts(of: open.owner)),
    ]
  }

  /// An item as the host sees it.
  private func describe(_ row: QueueRow, _ open: OpenSession) throws(Failure) -> JSON {
    // One that does not open is listed all the same, so that it can be cancelled.
    let item = try readItem(row, open.queueKey) ?? unreadable(row)
    let verdict = try row.rejection.flatMap { (sealed) throws(Failure) in
      try open.queueKey.openJSON(sealed, QueueItem.context(row.item, row.owner, "verdict"))
    }
    var notBeforeMS: Int64?
    if case .waiting(.time(let untilMS)) = row.state { notBeforeMS = untilMS }
    var reason: JSON = .null
    if let verdict, let code = verdict.string("code") {
      reason = [
        "code": .string(code), "text": words(code),
        "sqlstate": verdict["sqlstate"] ?? .null, "message": verdict["message"] ?? .null,
      ]
    } else if let code = try waitingCode(row) {
      reason = ["code": .string(code), "text": words(code), "sqlstate": .null, "message": .null]
    }
    return [
      "id": .uuid(item.id), "seq": .int(row.sequence), "kind": .string(item.kind),
      "state": .string(row.state.word), "payload": item.payload,
      "org_id": .uuid(item.org),
      "depends_on": .array(item.dependsOn.map { .string($0.text) }),
      "attempts": .int(row.attempts), "created_ms": .int(row.createdMS),
      "occurred_at_ms": JSON(item.occurredAtMS), "reason": reason,
      "field": verdict?["field"] ?? .null,
      "not_before_ms": JSON(notBeforeMS),
    ]
  }

  private func unreadable(_ row: QueueRow) -> QueueItem {
    QueueItem(
      id: substitute(row), kind: "", org: UUID(high: 0, low: 0), payload: [:], dependsOn: [],
      occurredAtMS: nil)
  }

  /// The name of an item whose own id cannot be read.
  func substitute(_ row: QueueRow) -> UUID {
    UUID(bytes: Array(row.item.prefix(16))) ?? UUID(high: 0, low: 0)
  }

  private func waitingCode(_ row: QueueRow) throws(Failure) -> String? {
    guard case .waiting(let reason) = row.state else { return nil }
    switch reason {
    case .time: return MessageCode.waitingTime.rawValue
    case .organisation: return MessageCode.waitingOrganisation.rawValue
    case .kind: return MessageCode.schemaNotReady.rawValue
    case .dependency:
      return try dependencies.waitsForParked(row.item)
        ? MessageCode.dependencyParked.rawValue : MessageCode.dependencyWaiting.rawValue
    }
  }

  private func find(_ fields: Fields, _ open: OpenSession) throws(Failure) -> QueueRow {
    let id = try fields.uuid("id")
    var row = try queue.find(itemTag(id, open.owner, try keys()))
    if row == nil, let tag = try queue.findParked(id.bytes, of: open.owner) {
      row = try queue.find(tag)
    }
    guard let row else {
      throw Failure(
        .queueNotFound, "no such item; what is stored is no longer queued", field: "/id")
    }
    return row
  }

  public func queueGet(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    let open = try requireSession()
    return ["item": try describe(try find(fields, open), open)]
  }

  // MARK: The user's control

  /// An item that is not in a request just now.
  private func findIdle(_ fields: Fields, _ open: OpenSession) throws(Failure) -> QueueRow {
    let row = try find(fields, open)
    guard row.state != .sending else {
      throw Failure(.queueInFlight, "the item is being sent; try again in a moment", field: "/id")
    }
    return row
  }

  public func queueEdit(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "payload"])
    let open = try requireSession()
    let keys = try keys()
    return try main.transaction { () throws(Failure) in
      let row = try findIdle(fields, open)
      guard let item = try readItem(row, open.queueKey) else {
        throw Failure(.storageDamaged, "unreadable; cancel it")
      }
      guard let kind = configuration.backend.kind(item.kind) else {
        throw Failure(.queueUnknownKind, "its kind is not in backend.queue", field: "/id")
      }
      if row.attempts > 0 { item.isRevised = true }
      item.payload = try readPayload(fields, kind, item.id, item.org, open)
      item.addTime(kind)
      let text = try item.json.text()
      guard text.count <= QueueItem.maximumSize else {
        throw Failure(
          .queueItemTooLarge, "an item has at most \(QueueItem.maximumSize) bytes",
          field: "/payload", detail: ["size": .int(text.count)])
      }
      try queue.replace(
        row.item, batchKey: batchKey(item, kind, keys),
        body: try open.queueKey.seal(text.bytes, QueueItem.context(row.item, row.owner, "body")),
        size: Int64(text.count))
      let isHeld = row.state == .waiting(.organisation)
      if try linkParents(of: item, kind, row.item, open.owner, keys), !isHeld {
        try queue.transition(row.sequence, .waiting(.dependency))
      }
      let state = try queue.find(row.item)?.state ?? .pending
      return ["id": .uuid(item.id), "state": .string(state.word)]
    }
  }

  public func queueCancel(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    let open = try requireSession()
    return try main.transaction { () throws(Failure) in
      let row = try findIdle(fields, open)
      try queue.remove(row.item)
      let released = try queue.releaseDependents(of: row.item)
      try endSyncRunIfDone(open.owner, clock.now())
      return ["id": .string(try fields.uuid("id").text), "released": .int(released)]
    }
  }

  public func queueRetry(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    let open = try requireSession()
    return try main.transaction { () throws(Failure) in
      var item: [UInt8]?
      if fields.optional("id") != nil { item = try findIdle(fields, open).item }
      let retried = try queue.retry(item, of: open.owner)
      return ["retried": .int(retried)]
    }
  }

  public func queueExport(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["state"])
    let open = try requireSession()
    let state = try state(fields)
    let items = JSON.array([])
    try queue.eachRow(of: open.owner, state: state) { (row) throws(Failure) in
      guard let item = try readItem(row, open.queueKey) else { return }
      let entry: JSON = [
        "id": .uuid(item.id), "kind": .string(item.kind), "payload": item.payload,
        "org_id": .uuid(item.org), "state": .string(row.state.word),
      ]
      if !item.dependsOn.isEmpty {
        entry.set("depends_on", .array(item.dependsOn.map { .string($0.text) }))
      }
      if let occurred = item.occurredAtMS { entry.set("occurred_at_ms", .int(occurred)) }
      items.append(entry)
    }
    return ["items": items]
  }

  // MARK: Why is nothing sent?

  public func queueExplain(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    _ = try fields.uuid(ifPresent: "id")
    let measured = try measure(.navigate)
    let (situation, row) = (measured.situation, measured.row)
    let now = clock.now()
    var reasons: [JSON] = []
    @inline(never)
    func add(_ code: MessageCode, _ count: Int64, until: Int64? = nil) {
      reasons.append([
        "code": .string(code.rawValue), "text": words(code.rawValue), "count": .int(count),
        "until_ms": JSON(until),
      ])
    }
    guard let owner = row.owner, situation.keys == .ready else {
      add(.signedOut, try queue.countOfOthers(than: nil))
      return ["reasons": .array(reasons), "counts": countsJSON(QueueCounts())]
    }
    let counts = try queue.counts(of: owner)
    if fields.optional("id") != nil { _ = try find(fields, try requireSession()) }
    if counts.total == 0 { add(.nothingQueued, 0) }
    if counts.sending > 0 { add(.sending, counts.sending) }
    let ready = counts.pending
    if ready > 0 {
      let rest = try backoffs.read(Service.rest.rawValue).notBeforeMS
      let auth = try backoffs.read(Service.auth.rawValue).notBeforeMS
      let expired = try isExpired(row, now)
      if !canUse(situation) {
        add(.locked, ready)
      } else if !online {
        add(.offline, ready)
      } else if expired || tokenRefused {
        add(.token, ready, until: auth > now.wallMS ? auth : nil)
      } else if rest > now.wallMS {
        add(.backOff, ready, until: rest)
      } else {
        add(.ready, ready)
      }
    }
    for (reason, count) in try queue.waitCounts(of: owner) {
      switch reason {
      case .dependency: add(.dependency, count)
      case .time(let untilMS): add(.backOff, count, until: untilMS)
      case .organisation: add(.organisation, count)
      case .kind: add(.schemaNotReady, count)
      }
    }
    if counts.parked > 0 { add(.parked, counts.parked) }
    let others = try queue.countOfOthers(than: owner)
    if others > 0 { add(.otherUser, others) }
    return ["reasons": .array(reasons), "counts": countsJSON(counts)]
  }
}

/// What the last item was like: the next one is mostly alike.
final class Shape {
  let org: UUID
  let kind: String
  let columns: [String]
  let tag: [UInt8]

  init(org: UUID, kind: String, columns: [String], tag: [UInt8]) {
    self.org = org
    self.kind = kind
    self.columns = columns
    self.tag = tag
  }
}

extension QueueItem {
  /// The time of the visit, in the table's own column, where the payload does not say it.
  fileprivate func addTime(_ kind: QueueKind) {
    guard let occurredAtMS, kind.columns.contains("occurred_at"), payload["occurred_at"] == nil
    else { return }
    payload = payload.shallowCopy
    payload.set("occurred_at", .string(ISO8601.format(ms: occurredAtMS)))
  }
}
