public import Base
import Policy
import Store
import Supabase
import Vault

/// Items that travel in one request, sorted by id: two batches with the same ids in opposite order
/// deadlock on the server (measured).
struct UploadBatch {
  struct Item {
    var sequence: Int64
    var tag: [UInt8]
    var id: UUID
    var attempts: Int64
    var denials: Int64
  }

  var owner: [UInt8]
  var org: UUID
  var kind: QueueKind
  var items: [Item]

  func only(_ ids: Set<UUID>) -> UploadBatch {
    var result = self
    result.items = items.filter { ids.contains($0.id) }
    return result
  }
}

/// Why an item is parked, as it is sealed with it.
struct Parking {
  var code: String
  var sqlstate: String?
  var message: String?
  var field: String?

  var json: JSON {
    [
      "code": .string(code), "sqlstate": JSON(sqlstate), "message": JSON(message),
      "field": JSON(field),
    ]
  }
}

extension Engine {
  /// An upload's time-out and grace.
  private static var uploadLeaseMS: Int64 { 75_000 }
  /// A read-back names its ids in the URL.
  private static var readBackItems: Int { 100 }

  // MARK: Sending

  func launchUpload(_ open: OpenSession, _ now: Instant) throws(Failure) -> JSON? {
    // After failures, one item probes whether the server is back before the rest follows.
    let probing = try backoffs.read(Service.rest.rawValue).attempts > 0
    let rows = try queue.take(
      of: open.owner, holder: holder.bytes, until: now.wallMS + Engine.uploadLeaseMS,
      maximumItems: probing ? 1 : BatchPolicy.mostItems,
      maximumSize: Int64(BatchPolicy.mostBytes))
    guard let first = rows.first else { return nil }
    guard let head = try readItem(first, open.queueKey),
      let kind = configuration.backend.kind(head.kind)
    else {
      try park([first], Parking(code: Word.rejected.rawValue), now)
      try release(rows.dropFirst().map { $0.sequence })
      return nil
    }
    var batch = UploadBatch(owner: open.owner, org: head.org, kind: kind, items: [])
    var bodies: [UUID: JSON] = [:]
    for row in rows {
      guard let item = try readItem(row, open.queueKey) else {
        try park([row], Parking(code: Word.rejected.rawValue), now)
        continue
      }
      batch.items.append(
        UploadBatch.Item(
          sequence: row.sequence, tag: row.item, id: item.id, attempts: row.attempts,
          denials: row.denials))
      bodies[item.id] = item.row(kind, user: open.userID)
    }
    batch.items.sort { $0.id < $1.id }
    let request = RestRequests.upload(
      configuration.backend, kind: kind, columns: head.columns(kind),
      rows: batch.items.compactMap { bodies[$0.id] }, bearer: open.accessToken)
    return try fly(request, .upload(batch), open.generation, now)
  }

  // MARK: Answers

  /// The answer to a batch. Only an id read back proves that an item is stored; any user's session
  /// may have come since, so every item is settled under its own owner.
  func uploaded(
    _ batch: UploadBatch, _ isCurrent: Bool, _ reply: Reply, _ now: Instant
  ) throws(Failure) {
    let verdict = RestClassification.rest(reply.answer)
    switch verdict {
    case .answered:
      try succeed(.rest)
      if batch.kind.upload == .rpc {
        guard let rows = UploadReply.rows(reply.body) else {
          return try pause(batch, reply, now)
        }
        try settle(batch, rows, now)
      } else {
        guard let ids = UploadReply.storedIDs(reply.body) else {
          return try pause(batch, reply, now)
        }
        let missing = try settle(batch, stored: Set(ids), now)
        enqueueReadBack(missing)
      }
    case .itemFault(let fault):
      try succeed(.rest)
      try blame(batch, parking(fault.rawValue, reply), now)
    case .duplicateKey:
      try succeed(.rest)
      if batch.items.count > 1 { return try split(batch) }
      // Stored before under this very id, or another unique key is in the way.
      enqueueReadBack(batch)
    case .missingParent:
      try succeed(.rest)
      try awaitParent(batch, reply, now)
    case .denied:
      try succeed(.rest)
      try denied(batch, reply, now)
    case .needsToken:
      try release(batch.items.map { $0.sequence })
      if isCurrent { tokenRefused = true }
    case .tooLarge:
      if batch.items.count > 1 { return try split(batch) }
      try blame(batch, parking(ItemFault.tooLong.rawValue, reply), now)
    case .statementTimeout:
      if batch.items.count > 1 { try split(batch) } else { try pause(batch, reply, now) }
    case .endOfData, .schemaNotReady, .serverBug, .transient, .unknownRejection:
      try pause(batch, reply, now)
    }
  }

  private func enqueueReadBack(_ batch: UploadBatch) {
    var at = 0
    while at < batch.items.count {
      var part = batch
      let end = min(at + Engine.readBackItems, batch.items.count)
      part.items = Array(batch.items[at..<end])
      readBack.append(part)
      at = end
    }
  }

  /// The answer to "which of these are stored?".
  func confirmed(
    _ batch: UploadBatch, _ isCurrent: Bool, _ reply: Reply, _ now: Instant
  ) throws(Failure) {
    let verdict = RestClassification.rest(reply.answer)
    guard verdict == .answered, let ids = UploadReply.storedIDs(reply.body) else {
      // What the server has is unknown: send again, it stores nothing twice.
      if verdict == .needsToken {
        try release(batch.items.map { $0.sequence })
        if isCurrent { tokenRefused = true }
        return
      }
      return try pause(batch, reply, now)
    }
    let absent = try settle(batch, stored: Set(ids), now)
    guard !absent.items.isEmpty else { return }
    // Neither inserted nor visible. Without a membership nothing of the organisation is visible, so
    // this says nothing then; with one, the id belongs to somebody else.
    if guarding.confirmed, isMember(of: batch.org) {
      try parkItems(absent, Parking(code: Word.conflict.rawValue), now)
    } else {
      try hold(absent, now)
    }
  }

  private func isMember(of org: UUID) -> Bool {
    open?.memberships?.contains { $0.orgID == org && $0.active && $0.orgActive } ?? false
  }

  // MARK: Settling

  /// Erase what is proved; the rest of the batch.
  private func settle(
    _ batch: UploadBatch, stored: Set<UUID>, _ now: Instant
  ) throws(Failure) -> UploadBatch {
    let proved = batch.only(stored)
    var rest = batch
    rest.items = batch.items.filter { !stored.contains($0.id) }
    try main.transaction { () throws(Failure) in
      for item in proved.items {
        try queue.remove(item.tag)
        try queue.releaseDependents(of: item.tag)
      }
      if !proved.items.isEmpty {
        try queue.countInDrain(
          of: batch.owner, sent: Int64(proved.items.count), parked: 0, now: now.wallMS)
        owesPull = true
      }
      try endDrainIfDone(batch.owner, now)
    }
    if !proved.items.isEmpty { try tellProgress(batch.owner, now) }
    return rest
  }

  /// A function's answer names every row's fate: no bad item costs a request of its own.
  private func settle(
    _ batch: UploadBatch, _ rows: [RowVerdict], _ now: Instant
  ) throws(Failure) {
    var stored: Set<UUID> = []
    var answered: Set<UUID> = []
    for row in rows where row.status == .stored || row.status == .duplicate {
      stored.insert(row.id)
    }
    for row in rows { answered.insert(row.id) }
    let rest = try settle(batch, stored: stored, now)
    for row in rows where !stored.contains(row.id) {
      let one = rest.only([row.id])
      guard !one.items.isEmpty else { continue }
      let parking = Parking(
        code: row.status == .conflict
          ? Word.conflict.rawValue : rowFault(row.sqlstate), sqlstate: row.sqlstate,
        message: row.message, field: row.column)
      switch rowVerdict(row) {
      case .missingParent: try awaitParent(one, parking, now)
      case .denied: try denied(one, parking, now)
      default: try parkItems(one, parking, now)
      }
    }
    // Rows without an answer prove nothing.
    let silent = rest.items.filter { !answered.contains($0.id) }.map { $0.sequence }
    try release(silent)
  }

  private func rowVerdict(_ row: RowVerdict) -> RestVerdict {
    guard row.status == .rejected, let code = row.sqlstate else { return .itemFault(.rejected) }
    return RestClassification.rest(Answer(status: 400, code: code, isServerJSON: true))
  }

  private func rowFault(_ sqlstate: String?) -> String {
    let verdict = RestClassification.rest(
      Answer(status: 400, code: sqlstate, isServerJSON: true))
    if case .itemFault(let fault) = verdict { return fault.rawValue }
    if case .duplicateKey = verdict { return ItemFault.duplicate.rawValue }
    if case .missingParent = verdict { return Word.missingParent.rawValue }
    return ItemFault.rejected.rawValue
  }

  /// A refused batch is halved until the item at fault is alone, and that one is parked.
  private func blame(
    _ batch: UploadBatch, _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    if batch.items.count > 1 { try split(batch) } else { try parkItems(batch, parking, now) }
  }

  /// Two halves that travel apart.
  private func split(_ batch: UploadBatch) throws(Failure) {
    let middle = batch.items.count / 2
    try main.transaction { () throws(Failure) in
      for half in [batch.items[..<middle], batch.items[middle...]] {
        let cohort = try meta.next(.cohort)
        for item in half {
          try queue.settle(item.sequence, .pending)
          try queue.assign(item.sequence, cohort: cohort)
        }
      }
    }
  }

  /// Back among the pending ones, uncharged.
  private func release(_ sequences: [Int64]) throws(Failure) {
    try main.transaction { () throws(Failure) in
      for sequence in sequences { try queue.settle(sequence, .pending) }
    }
  }

  /// Not the items' fault: the service backs off.
  private func pause(_ batch: UploadBatch, _ reply: Reply, _ now: Instant) throws(Failure) {
    try main.transaction { () throws(Failure) in
      for item in batch.items { try queue.settle(item.sequence, .pending, attempted: true) }
      try backOff(.rest, reply, now)
    }
    stale = true
  }

  /// Wait for a parent that is queued; without one, park.
  private func awaitParent(
    _ batch: UploadBatch, _ reply: Reply, _ now: Instant
  ) throws(Failure) {
    if batch.items.count > 1 { return try split(batch) }
    try awaitParent(batch, parking(Word.missingParent.rawValue, reply), now)
  }

  private func awaitParent(
    _ batch: UploadBatch, _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    let keys = try keys()
    guard let sent = batch.items.first else { return }
    let waits = try main.transaction { () throws(Failure) -> Bool in
      guard let row = try queue.find(sent.tag),
        let item = try readItem(row, try keys.queues.derived(for: row.owner)),
        try linkParents(of: item, batch.kind, sent.tag, batch.owner, keys)
      else { return false }
      try queue.settle(sent.sequence, .waiting, hold: .dependency)
      return true
    }
    if !waits { try parkItems(batch, parking, now) }
  }

  /// A policy said no. Either the membership has ended: then the organisation's items wait, and the
  /// guard finds out; or it has not, and the item itself is at fault.
  private func denied(
    _ batch: UploadBatch, _ reply: Reply, _ now: Instant
  ) throws(Failure) {
    try denied(batch, parking(ItemFault.rejected.rawValue, reply), now)
  }

  private func denied(
    _ batch: UploadBatch, _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    if batch.items.contains(where: { $0.denials > 0 }), guarding.confirmed, isMember(of: batch.org) {
      return try blame(batch, parking, now)
    }
    try hold(batch, now)
  }

  private func hold(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    try main.transaction { () throws(Failure) in
      for item in batch.items {
        try queue.settle(item.sequence, .waiting, hold: .organisation, denied: true)
      }
    }
    askGuard(now, anew: true)
  }

  // MARK: Parking

  private func parking(_ code: String, _ reply: Reply) -> Parking {
    let error = ServerError.read(reply.body)
    return Parking(
      code: code, sqlstate: error.code, message: error.message, field: error.column)
  }

  private func parkItems(
    _ batch: UploadBatch, _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    var rows: [QueueRow] = []
    for item in batch.items { if let row = try queue.find(item.tag) { rows.append(row) } }
    try park(rows, parking, now)
  }

  private func park(
    _ rows: [QueueRow], _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    let keys = try keys()
    try main.transaction { () throws(Failure) in
      for row in rows {
        let key = try keys.queues.derived(for: row.owner)
        let item = try readItem(row, key)
        try queue.settle(
          row.sequence, .parked, attempted: true,
          verdict: try key.seal(
            parking.json, QueueItem.context(row.item, row.owner, "verdict")))
        try queue.countInDrain(of: row.owner, sent: 0, parked: 1, now: now.wallMS)
        try notify(
          [
            "type": "item_parked", "id": JSON(item?.id.text),
            "reason": ["code": .string(parking.code), "text": words(parking.code)],
            "field": JSON(parking.field),
          ], owner: row.owner)
        try endDrainIfDone(row.owner, now)
      }
    }
  }

  // MARK: Progress

  /// One `sync_completed` when nothing of the owner's can be sent any more.
  func endDrainIfDone(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard let drain = try queue.drain(of: owner), drain.sent + drain.parked > 0 else { return }
    if try queue.has(.pending, of: owner) { return }
    if try queue.has(.sending, of: owner) { return }
    if try queue.nextMS(of: owner) != nil { return }
    let waiting = try queue.counts(of: owner).waiting
    try queue.endDrain(of: owner)
    try meta.set(.lastDrain, .int(now.wallMS))
    try notify(
      [
        "type": "sync_completed", "sent": .int(drain.sent), "parked": .int(drain.parked),
        "waiting": .int(waiting), "duration_ms": .int(max(0, now.wallMS - drain.startedMS)),
        "message": ["code": "sync_completed", "text": words("sync_completed")],
      ], owner: owner)
  }

  private func tellProgress(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard now.monotonicMS - events.lastProgressMS >= 200,
      let drain = try queue.drain(of: owner)
    else { return }
    events.lastProgressMS = now.monotonicMS
    try events.tell(
      [
        "type": "sync_progress", "sent": .int(drain.sent), "parked": .int(drain.parked),
        "counts": countsJSON(try queue.counts(of: owner)),
      ], meta)
  }

  // MARK: Leases

  /// Items in the hands of a process that died, or that is far too late, become pending again.
  func reclaimLeases(at now: Instant) throws(Failure) {
    for lease in try queue.leases() where lease.holder != holder.bytes {
      let isDead = !Holder.isAlive(lease.holder, bootID: now.bootID)
      if isDead || lease.untilMS <= now.wallMS { try queue.reclaim(from: lease.holder) }
    }
  }

  public func syncNow(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    _ = try requireSession()
    let now = clock.now()
    owesPull = true
    askGuard(now, anew: !guarding.confirmed)
    if !online { return ["started": false, "reason": "offline"] }
    let rest = try backoffs.read(Service.rest.rawValue).notBeforeMS
    if rest > now.wallMS { return ["started": false, "reason": "back_off"] }
    return ["started": true, "reason": .null]
  }

  public func syncStatus(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (open, keys) = (try requireSession(), try keys())
    let now = clock.now()
    let rest = try backoffs.read(Service.rest.rawValue).notBeforeMS
    var asOf: (contacts: Int64?, summary: Int64?) = (nil, nil)
    if let choice = open.choice {
      let org = cacheTag(choice, open, keys)
      asOf.contacts = try cache().sources.read(.contacts, of: org)?.asOfMS
      asOf.summary = try cache().sources.read(.summary, of: org)?.asOfMS
    }
    return [
      "running": .bool(isFlying(.upload) || isFlying(.pull)),
      "counts": countsJSON(try queue.counts(of: open.owner)),
      "last_completed_ms": JSON(try meta.int(.lastDrain)),
      "not_before_ms": JSON(rest > now.wallMS ? rest : nil),
      "contacts": ["as_of_ms": JSON(asOf.contacts)],
      "summary": ["as_of_ms": JSON(asOf.summary)],
    ]
  }
}
