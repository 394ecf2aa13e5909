import Base
import Policy
import Store
import Supabase
import Vault

/// Reports on the queue: lists, single items, the export, and why nothing is sent.
struct ItemReport: Rules {
  let parts: Parts

  static func readState(_ fields: Fields) throws(Failure) -> ItemState.Code? {
    guard let word = try fields.string(ifPresent: "state", maximum: 16) else { return nil }
    guard let state = ItemState.Code(word: word) else {
      throw fields.invalid("state", "pending, sending, waiting or parked is expected")
    }
    return state
  }

  // MARK: Items

  func list(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["state", "after", "limit"])
    let session = try decider.requireSession()
    let limit = try fields.integer(ifPresent: "limit", in: 1...500) ?? 100
    let rows = try core.queue.page(
      of: session.owner, state: try ItemReport.readState(fields),
      after: try fields.integer(ifPresent: "after", in: 0...Fields.safe.upperBound) ?? 0,
      limit: Int(limit))
    var items: [JSON] = []
    let below = try waitingForParked(rows, of: session.owner)
    for row in rows {
      let item = try row.read(session.queueKey)
      items.append(try describe(row, item, session, below))
    }
    return [
      "items": .array(items),
      "next": JSON(rows.count == Int(limit) ? rows.last?.sequence : nil),
      "counts": try core.queue.counts(of: session.owner).json,
    ]
  }

  func get(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    let session = try decider.requireSession()
    let id = try fields.uuid("id")
    if let row = try core.queuedItem(id, session) {
      let item = try row.read(session.queueKey)
      let below = try waitingForParked([row], of: session.owner)
      return ["state": .string(row.state.word), "item": try describe(row, item, session, below)]
    }
    guard let left = try core.fate(of: core.keys().itemTag(id, session.owner)) else {
      throw Core.notQueued(nil)
    }
    switch left.fate {
    case .stored: return ["state": "stored", "stored_ms": .int(left.ms)]
    case .cancelled: return ["state": "cancelled", "cancelled_ms": .int(left.ms)]
    case .unknownOutcome: return ["state": "unknown_outcome", "cancelled_ms": .int(left.ms)]
    }
  }

  /// The numbers of those rows that wait for a parked item.
  func waitingForParked(
    _ rows: [QueueRow], of owner: [UInt8]
  ) throws(Failure) -> [Int64] {
    let waiting = rows.filter {
      if case .waiting(.dependency) = $0.state { return true }
      return false
    }
    guard let first = waiting.first, let last = waiting.last else { return [] }
    return try core.dependencies.waitingForParked(
      of: owner, in: first.sequence...max(first.sequence, last.sequence))
  }

  /// An item as the host sees it. An unreadable one (nil) is shown too, so that it can be cancelled.
  func describe(
    _ row: QueueRow, _ item: QueueItem?, _ session: OpenSession, _ waitingForParked: [Int64]
  ) throws(Failure) -> JSON {
    let item = item ?? ItemReport.unreadable(row)
    let rejection = row.state == .parked ? try ParkReason.read(row, session.queueKey) : JSON?.none
    let now = core.clock.now()
    let notBeforeMS = try row.state.until.map { (time) throws(Failure) in
      try core.wallMS(time, now)
    }
    return [
      "id": .uuid(item.id), "seq": .int(row.sequence), "kind": .string(item.kind),
      "state": .string(row.state.word), "payload": item.payload,
      "org_id": JSON(item.org),
      "depends_on": .array(item.dependsOn.map { .string($0.text) }),
      "attempts": .int(row.attempts), "created_ms": .int(row.createdMS),
      "occurred_at_ms": JSON(item.occurredAtMS),
      "reason": reason(row, item, rejection, waitingForParked),
      "field": rejection?["field"] ?? .null, "not_before_ms": JSON(notBeforeMS),
      "operation": .string(item.operation.rawValue), "conflict": ItemReport.conflict(rejection),
    ]
  }

  /// What others have changed of a parked correction, for its user's choice.
  static func conflict(_ rejection: JSON?) -> JSON {
    guard let columns = rejection?["conflict"]?["columns"] else { return .null }
    return ["columns": columns]
  }

  /// Why the item is not sent: what the server said, or what it waits for.
  private func reason(
    _ row: QueueRow, _ item: QueueItem, _ rejection: JSON?, _ waitingForParked: [Int64]
  ) -> JSON {
    if let rejection, let code = rejection.string("code") {
      return [
        "code": .string(code), "text": core.text(ofCode: code),
        "sqlstate": rejection["sqlstate"] ?? .null, "message": rejection["message"] ?? .null,
      ]
    }
    let code: MessageCode
    if case .waiting(let waitReason) = row.state {
      code = self.code(of: waitReason, row, item.kind, waitingForParked)
    } else if item.isCancelled {
      code = .unknownOutcome
    } else {
      return .null
    }
    return [
      "code": .string(code.rawValue), "text": core.text(code), "sqlstate": .null,
      "message": .null,
    ]
  }

  private func code(
    of reason: WaitReason, _ row: QueueRow, _ kind: String, _ waitingForParked: [Int64]
  ) -> MessageCode {
    switch reason {
    case .time: return problems.concern(kind: kind) ? .schemaNotReady : .waitingTime
    case .server: return .serverPause
    case .organisation:
      return problems.concern(.membershipCheck) ? .schemaNotReady : .waitingOrganisation
    case .kind: return .schemaNotReady
    case .blocked: return .waitingBlocked
    case .dependency:
      return waitingForParked.sortedContains(row.sequence) ? .dependencyParked : .dependencyWaiting
    }
  }

  private static func unreadable(_ row: QueueRow) -> QueueItem {
    QueueItem(
      id: row.substituteID, kind: "", org: UUID(high: 0, low: 0), payload: [:], dependsOn: [],
      occurredAtMS: nil)
  }

  /// Every readable item, in the form that `queue_add` accepts. Only parents that are queued are named,
  /// because another device does not know which items were stored.
  func export(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["state"])
    let session = try decider.requireSession()
    let items = JSON.array([])
    try core.queue.eachRow(of: session.owner, state: try ItemReport.readState(fields)) {
      (row) throws(Failure) in
      guard let item = try row.read(session.queueKey) else { return }
      let entry: JSON = [
        "id": .uuid(item.id), "kind": .string(item.kind), "payload": item.payload,
        "org_id": JSON(item.org), "state": .string(row.state.word),
      ]
      if item.stored != nil { entry.set("operation", .string(item.operation.rawValue)) }
      var parents: [JSON] = []
      for id in item.dependsOn
      where try core.queue.contains(try core.keys().itemTag(id, session.owner)) {
        parents.append(.string(id.text))
      }
      if !parents.isEmpty {
        entry.set("depends_on", .array(parents))
      }
      if let occurred = item.occurredAtMS { entry.set("occurred_at_ms", .int(occurred)) }
      items.append(entry)
    }
    return ["items": items]
  }

  // MARK: Why is nothing sent?

  func explain(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id"])
    _ = try fields.uuid(ifPresent: "id")
    let assessment = try decider.assess(.navigate)
    let reasons = JSON.array([])
    guard let owner = assessment.row.owner, assessment.situation.keys == .ready else {
      reasons.append(reason(.signedOut, try core.queue.countOfOthers(than: nil)))
      return ["reasons": reasons, "counts": QueueCounts().json]
    }
    let counts = try core.queue.counts(of: owner)
    if fields.optional("id") != nil {
      _ = try core.findItem(fields, try decider.requireSession())
    }
    if counts.total == 0 { reasons.append(reason(.nothingQueued, 0)) }
    add(.sending, counts.sending, to: reasons)
    if counts.pending > 0 {
      let (code, untilMS) = try whyPending(assessment)
      add(code, counts.pending, untilMS, to: reasons)
    }
    let now = core.clock.now()
    for (reason, count) in try core.queue.waitCounts(of: owner) {
      var (refused, untilMS): (Int64, Int64?) = (0, nil)
      if case .time = reason { refused = try countRefused(of: owner) }
      if let pause = reason.pause { untilMS = try core.wallMS(pause.until, now) }
      add(.schemaNotReady, refused, untilMS, to: reasons)
      add(code(of: reason), count - refused, untilMS, to: reasons)
    }
    add(.parked, counts.parked, to: reasons)
    add(.otherUser, try core.queue.countOfOthers(than: owner), to: reasons)
    return ["reasons": reasons, "counts": counts.json]
  }

  private func code(of reason: WaitReason) -> MessageCode {
    switch reason {
    case .dependency: .dependency
    case .time: problems.obstacle ?? .backOff
    case .server: .serverPause
    case .organisation: problems.concern(.membershipCheck) ? .schemaNotReady : .organisation
    case .kind: .schemaNotReady
    case .blocked: .waitingBlocked
    }
  }

  /// Why the pending items are not in a request yet, and until when.
  private func whyPending(
    _ assessment: Assessment
  ) throws(Failure) -> (code: MessageCode, untilMS: Int64?) {
    if !decider.canSend(assessment.situation) { return (.locked, nil) }
    guard let hold = try refresh.uploadHold(core.clock.now()) else { return (.ready, nil) }
    if hold.code == .offline { return (.offline, nil) }
    // What the server asked for needs no other cause.
    let cause = hold.code == .serverPause ? nil : problems.obstacle
    return (cause ?? hold.code, hold.pause?.untilMS)
  }

  /// How many of the items that wait for a time have a kind that the server's schema refuses.
  private func countRefused(of owner: [UInt8]) throws(Failure) -> Int64 {
    guard problems.concern(.upload) else { return 0 }
    let key = try core.keys().queues.derived(for: owner)
    var count: Int64 = 0
    for group in try core.queue.waiting(of: owner, for: .time(.none)) {
      if let kind = try core.queue.find(group.item)?.read(key)?.kind, problems.concern(kind: kind) {
        count += group.count
      }
    }
    return count
  }

  private func add(
    _ code: MessageCode, _ count: Int64, _ untilMS: Int64? = nil, to reasons: JSON
  ) {
    if count > 0 { reasons.append(reason(code, count, untilMS)) }
  }

  private func reason(_ code: MessageCode, _ count: Int64, _ untilMS: Int64? = nil) -> JSON {
    [
      "code": .string(code.rawValue), "text": core.text(code), "count": .int(count),
      "until_ms": JSON(untilMS),
    ]
  }
}
