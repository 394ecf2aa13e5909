public import Base
import Policy
import Store
import Supabase
import Vault

/// Items that travel in one request, sorted by id: two batches with the same ids in opposite order
/// deadlock on the server (measured).
final class UploadBatch {
  final class Item {
    let sequence: Int64
    let tag: [UInt8]
    let id: UUID
    let attempts: Int64
    let denials: Int64
    /// The server may have it with an older body.
    let isRevised: Bool
    /// What the summary will count of it.
    let registered: Registered?

    init(_ row: QueueRow, _ item: QueueItem, _ registered: Registered?) {
      sequence = row.sequence
      tag = row.item
      id = item.id
      attempts = row.attempts
      denials = row.denials
      isRevised = item.isRevised
      self.registered = registered
    }
  }

  let owner: [UInt8]
  let org: UUID
  let kind: QueueKind
  var items: [Item]
  /// Why the server refused it, while it is asked whether it has it nevertheless.
  let doubt: Parking?

  init(owner: [UInt8], org: UUID, kind: QueueKind, items: [Item] = [], doubt: Parking? = nil) {
    self.owner = owner
    self.org = org
    self.kind = kind
    self.items = items
    self.doubt = doubt
  }

  /// How often any of the items was sent in vain.
  var attempts: Int64 { items.reduce(0) { max($0, $1.attempts) } }

  func with(_ items: [Item]) -> UploadBatch {
    UploadBatch(owner: owner, org: org, kind: kind, items: items, doubt: doubt)
  }

  func filter(_ isIn: (Item) -> Bool) -> UploadBatch { with(items.filter(isIn)) }

  func doubted(_ doubt: Parking) -> UploadBatch {
    UploadBatch(owner: owner, org: org, kind: kind, items: items, doubt: doubt)
  }
}

/// Why an item is parked, as it is sealed with it.
final class Parking {
  let code: String
  let sqlstate: String?
  let message: String?
  let field: String?

  init(code: String, sqlstate: String? = nil, message: String? = nil, field: String? = nil) {
    self.code = code
    self.sqlstate = sqlstate
    self.message = message
    self.field = field
  }

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
  /// So many failures in a row are no accident: one of the items may be what is in the way.
  private static var suspectAfter: Int64 { 2 }
  /// Access tokens that are refused one after the other, this soon, are not what is wrong.
  private static var refusalPeriodMS: Int64 { 60_000 }
  /// A read-back names its ids in the URL.
  private static var readBackItems: Int { 100 }

  // MARK: Sending

  func launchUpload(_ open: OpenSession, _ now: Instant) throws(Failure) -> JSON? {
    let rows = try main.transaction { () throws(Failure) in
      let rows = try queue.take(
        of: open.owner, holder: holder.bytes, until: now.wallMS + Engine.uploadLeaseMS,
        maximumItems: BatchPolicy.items(probing: try backoff(of: .rest).isProbing),
        freshItems: batchItems, maximumSize: Int64(BatchPolicy.maxBytes))
      guard !rows.isEmpty else { return rows }
      _ = try meta.next(.uploads)
      try syncRuns.start(of: open.owner, now: now.wallMS)
      return rows
    }
    guard let first = rows.first else { return nil }
    guard let head = try readItem(first, open.queueKey) else {
      try park([first], Parking(code: MessageCode.unreadable.rawValue), now)
      try release(rows.dropFirst().map { $0.sequence })
      return nil
    }
    guard let kind = configuration.backend.kind(head.kind) else {
      try holdKind(rows, open.owner, now)
      return nil
    }
    let batch = UploadBatch(owner: open.owner, org: head.org, kind: kind)
    var sending: [(item: UploadBatch.Item, body: JSON)] = []
    for row in rows {
      guard let item = row === first ? head : try readItem(row, open.queueKey) else {
        try park([row], Parking(code: MessageCode.unreadable.rawValue), now)
        continue
      }
      sending.append(
        (
          UploadBatch.Item(row, item, Registered(item, configuration.backend)),
          item.row(kind, user: open.userID)
        ))
    }
    sending.sort { $0.item.id < $1.item.id }
    batch.items = sending.map { $0.item }
    let request = RestRequests.upload(
      configuration.backend, kind: kind, columns: head.columns(kind),
      rows: sending.map { $0.body }, bearer: open.accessToken)
    return try fly(request, .upload(batch), open.generation, now)
  }

  /// The configuration has lost the items' kind: they wait for one that knows it.
  private func holdKind(
    _ rows: [QueueRow], _ owner: [UInt8], _ now: Instant
  ) throws(Failure) {
    try main.transaction { () throws(Failure) in
      for row in rows { try queue.transition(row.sequence, .waiting(.kind)) }
      try endSyncRunIfDone(owner, now)
    }
  }

  // MARK: Answers

  /// The part of a batch that is still in this handle's hands. After a jump of the clock another
  /// process may have taken it over, and the user may have changed it since.
  private func stillOurs(_ batch: UploadBatch) throws(Failure) -> UploadBatch {
    let ours = try queue.leased(by: holder.bytes)
    return batch.filter { item in
      ours.sortedContains(item.sequence)
    }
  }

  /// The answer to a batch. Only an id read back proves that an item is stored; any user's session
  /// may have come since, so every item is settled under its own owner.
  func uploaded(
    _ sent: UploadBatch, _ isCurrent: Bool, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let batch = try stillOurs(sent)
    guard !batch.items.isEmpty else { return }
    let verdict = RestClassification.rest(reply.facts)
    switch verdict {
    case .answered:
      try succeed(.rest)
      if batch.kind.upload == .rpc {
        guard let rows = UploadReply.rows(reply.body) else {
          return try pause(batch, reply, now)
        }
        try settle(batch, rows, isCurrent, reply, now)
      } else {
        guard let ids = UploadReply.storedIDs(reply.body) else {
          return try pause(batch, reply, now)
        }
        let missing = try settle(batch, stored: SortedUUIDSet(ids), isNew: true, now)
        batchItems = min(batchItems * 2, BatchPolicy.maxItems)
        try enqueueReadBack(missing, isCurrent)
      }
    case .itemFault(let fault):
      try succeed(.rest)
      try blame(batch, parking(fault.rawValue, reply), now)
    case .duplicateKey:
      try succeed(.rest)
      if batch.items.count > 1 { return try split(batch) }
      // Stored before under this very id, or another unique key is in the way.
      try enqueueReadBack(
        batch.doubted(parking(ItemFault.duplicate.rawValue, reply)), isCurrent)
    case .missingParent:
      try succeed(.rest)
      try awaitParent(batch, reply, now)
    case .denied:
      try succeed(.rest)
      // What another user may do proves nothing for this one.
      if !isCurrent { return try release(batch) }
      try denied(batch, reply, now)
    case .needsToken:
      try release(batch)
      if isCurrent { try refuseToken(reply, now) }
    case .tooLarge:
      if batch.items.count > 1 { return try split(batch) }
      try blame(batch, parking(ItemFault.tooLong.rawValue, reply), now)
    case .statementTimeout:
      if batch.items.count > 1 { try split(batch) } else { try suspend(batch, reply, now) }
    case .schemaNotReady, .serverBug, .unknownRejection: try suspend(batch, reply, now)
    case .endOfData, .transient: try pause(batch, reply, now)
    }
  }

  /// The server refused the access token: a new one is fetched, and the items are not charged. One
  /// that is refused as soon as it has come would be fetched for ever, so then the service rests.
  func refuseToken(_ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    guard let open else { return }
    tokenRefused = true
    if let refusal, refusal.generation == open.generation { return }
    if let refusal, now.monotonicMS - refusal.monotonicMS < Engine.refusalPeriodMS {
      try backOff(.rest, reply, now)
    }
    refusal = (open.generation, now.monotonicMS)
  }

  /// Ask which of these the server has, by and by. Nobody else's session may ask.
  private func enqueueReadBack(_ batch: UploadBatch, _ isCurrent: Bool) throws(Failure) {
    guard isCurrent else { return try release(batch) }
    var at = 0
    while at < batch.items.count {
      let end = min(at + Engine.readBackItems, batch.items.count)
      readBack.append(batch.with(Array(batch.items[at..<end])))
      at = end
    }
  }

  /// Nobody asks about these any more: they are sent again, which stores nothing twice.
  func abandonReadBack() throws(Failure) {
    for batch in readBack { try release(try stillOurs(batch)) }
    readBack = []
  }

  /// The answer to "which of these are stored?".
  func confirmed(
    _ sent: UploadBatch, _ isCurrent: Bool, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let batch = try stillOurs(sent)
    guard !batch.items.isEmpty else { return }
    let verdict = RestClassification.rest(reply.facts)
    guard verdict == .answered, let ids = UploadReply.storedIDs(reply.body) else {
      // What the server has is unknown: send again, it stores nothing twice.
      if verdict == .needsToken {
        try release(batch)
        if isCurrent { try refuseToken(reply, now) }
        return
      }
      return try pause(batch, reply, now)
    }
    let absent = try settle(batch, stored: SortedUUIDSet(ids), isNew: false, now)
    guard !absent.items.isEmpty else { return }
    if !isCurrent { return try release(absent) }
    // Neither inserted nor visible. Without a membership nothing of the organisation is visible, so
    // this says nothing then; with one, the id belongs to somebody else.
    if guarding.confirmed, isMember(of: batch.org) {
      try parkItems(absent, batch.doubt ?? Parking(code: MessageCode.conflict.rawValue), now)
    } else {
      try hold(absent, now)
    }
  }

  private func isMember(of org: UUID) -> Bool {
    open?.memberships?.contains { $0.orgID == org && $0.isUsable } ?? false
  }

  // MARK: Settling

  /// Erase what is proved; the rest of the batch. A row that is not new may be an older body of one
  /// that was edited: the user is told, for nobody else can tell.
  private func settle(
    _ batch: UploadBatch, stored: SortedUUIDSet, isNew: Bool, _ now: Instant
  ) throws(Failure) -> UploadBatch {
    let found = batch.filter { stored.contains($0.id) }
    let proved = isNew ? found : found.filter { !$0.isRevised }
    if !isNew {
      try parkItems(
        found.filter { $0.isRevised }, Parking(code: MessageCode.unknownOutcome.rawValue), now)
    }
    let rest = batch.filter { !stored.contains($0.id) }
    try main.transaction { () throws(Failure) in
      try queue.removeStored(proved.items.map { $0.tag })
      if !proved.items.isEmpty {
        try syncRuns.count(
          of: batch.owner, sent: Int64(proved.items.count), parked: 0, now: now.wallMS)
        owesPull = true
      }
      try endSyncRunIfDone(batch.owner, now)
    }
    if !proved.items.isEmpty {
      countSent(proved.items, of: batch.org, batch.owner)
      try tellProgress(batch.owner, now)
    }
    return rest
  }

  /// A function's answer names every row's fate: no bad item costs a request of its own.
  private func settle(
    _ batch: UploadBatch, _ rows: [RowResult], _ isCurrent: Bool, _ reply: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    func ids(_ isIn: (RowResult) -> Bool) -> SortedUUIDSet {
      SortedUUIDSet(rows.filter(isIn).map { $0.id })
    }
    let stored = ids { $0.status == .stored || $0.status == .duplicate }
    let answered = ids { _ in true }
    let known = try settle(batch, stored: ids { $0.status == .stored }, isNew: true, now)
    let rest = try settle(known, stored: stored, isNew: false, now)
    for row in rows where !stored.contains(row.id) {
      let one = rest.filter { $0.id == row.id }
      guard !one.items.isEmpty else { continue }
      let parking = Parking(
        code: row.status == .conflict
          ? MessageCode.conflict.rawValue : rowFault(row.sqlstate), sqlstate: row.sqlstate,
        message: row.message, field: row.column)
      switch rowVerdict(row) {
      case .missingParent: try awaitParent(one, parking, now)
      case .denied where !isCurrent: try release(one)
      case .denied: try denied(one, parking, now)
      default: try parkItems(one, parking, now)
      }
    }
    // Rows without an answer prove nothing, and asking again at once would not help.
    let silent = rest.filter { !answered.contains($0.id) }
    if !silent.items.isEmpty { try suspend(silent, reply, now) }
  }

  private func rowVerdict(_ row: RowResult) -> RestOutcome {
    guard row.status == .rejected, let code = row.sqlstate else { return .itemFault(.rejected) }
    return RestClassification.rest(ResponseFacts(status: 400, code: code, isServerJSON: true))
  }

  private func rowFault(_ sqlstate: String?) -> String {
    let verdict = RestClassification.rest(
      ResponseFacts(status: 400, code: sqlstate, isServerJSON: true))
    if case .itemFault(let fault) = verdict { return fault.rawValue }
    if case .duplicateKey = verdict { return ItemFault.duplicate.rawValue }
    if case .missingParent = verdict { return MessageCode.missingParent.rawValue }
    return ItemFault.rejected.rawValue
  }

  /// A refused batch is halved until the item at fault is alone, and that one is parked. Where there is
  /// one there may be more: the next batches are smaller, for each of them costs less then.
  private func blame(
    _ batch: UploadBatch, _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    guard batch.items.count > 1 else { return try parkItems(batch, parking, now) }
    batchItems = BatchPolicy.carefulItems
    try split(batch)
  }

  /// Two halves that travel apart.
  private func split(_ batch: UploadBatch, attempted: Bool = false) throws(Failure) {
    let middle = batch.items.count / 2
    try main.transaction { () throws(Failure) in
      for half in [batch.items[..<middle], batch.items[middle...]] {
        let group = try meta.next(.retryGroup)
        for item in half {
          try queue.transition(
            item.sequence, .pending(charge: attempted ? .attempt : .nothing, retryGroup: group))
        }
      }
    }
  }

  /// Back among the pending ones, uncharged.
  private func release(_ batch: UploadBatch) throws(Failure) {
    try release(batch.items.map { $0.sequence })
  }

  private func release(_ sequences: [Int64]) throws(Failure) {
    try main.transaction { () throws(Failure) in
      for sequence in sequences { try queue.transition(sequence, .pending()) }
    }
  }

  /// Back among the pending ones, charged. After several failures in halves and behind all others:
  /// it may be one of the items that the way there cannot take, and that one must not be in the way.
  private func retry(_ batch: UploadBatch) throws(Failure) {
    let isSuspect = batch.attempts >= Engine.suspectAfter
    if isSuspect, batch.items.count > 1 { return try split(batch, attempted: true) }
    for item in batch.items {
      try queue.transition(item.sequence, .pending(charge: .attempt))
    }
    if isSuspect, let only = batch.items.first { try moveBehind(only) }
  }

  /// Among the last ones, so that an outage, in which one item after the other is tried in vain, does
  /// not leave each in a request of its own; behind them if it is one of them.
  private func moveBehind(_ item: UploadBatch.Item) throws(Failure) {
    var group = try meta.int(.retryGroup) ?? 0
    if try queue.find(item.tag)?.retryGroup ?? 0 >= group { group = try meta.next(.retryGroup) }
    try queue.assign(item.sequence, retryGroup: group)
  }

  /// Not the items' fault: the service backs off.
  private func pause(_ batch: UploadBatch, _ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    try main.transaction { () throws(Failure) in
      try retry(batch)
      try backOff(.rest, reply, now)
    }
    stale = true
  }

  /// The server lives, but takes nothing of this shape: no table (yet), or a defect there. That
  /// shape backs off by itself, and nothing is parked; the others go on.
  private func suspend(_ batch: UploadBatch, _ reply: HTTPResponse, _ now: Instant) throws(Failure)
  {
    try succeed(.rest)
    guard let first = batch.items.first else { return }
    let delay = Backoff.delayMS(
      attempt: Int(clamping: batch.attempts + 1), random: Random.word(),
      floorMS: reply.retryAfterMS ?? 0)
    try main.transaction { () throws(Failure) in
      try retry(batch)
      try queue.suspend(like: first.sequence, of: batch.owner, until: now.wallMS + delay)
    }
  }

  /// Wait for a parent that is queued; without one, park.
  private func awaitParent(
    _ batch: UploadBatch, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if batch.items.count > 1 { return try split(batch) }
    try awaitParent(batch, parking(MessageCode.missingParent.rawValue, reply), now)
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
      try queue.transition(sent.sequence, .waiting(.dependency))
      try endSyncRunIfDone(batch.owner, now)
      return true
    }
    if !waits { try parkItems(batch, parking, now) }
  }

  /// A policy said no. Either the membership has ended: then the organisation's items wait, and the
  /// guard finds out; or it has not, and the item itself is at fault.
  private func denied(
    _ batch: UploadBatch, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    try denied(batch, parking(ItemFault.rejected.rawValue, reply), now)
  }

  private func denied(
    _ batch: UploadBatch, _ parking: Parking, _ now: Instant
  ) throws(Failure) {
    if batch.items.contains(where: { $0.denials > 0 }), guarding.confirmed, isMember(of: batch.org)
    {
      return try blame(batch, parking, now)
    }
    try hold(batch, now)
  }

  private func hold(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    try main.transaction { () throws(Failure) in
      for item in batch.items {
        try queue.transition(item.sequence, .waiting(.organisation, charge: .denial))
      }
    }
    askGuard(now, anew: true, silently: true)
  }

  // MARK: Parking

  private func parking(_ code: String, _ reply: HTTPResponse) -> Parking {
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
        let rejection = try key.seal(
          parking.json, QueueItem.context(row.item, row.owner, "verdict"))
        try queue.transition(row.sequence, .parked(rejection: rejection, charge: .attempt))
        try syncRuns.count(of: row.owner, sent: 0, parked: 1, now: now.wallMS)
        try notify(
          [
            "type": "item_parked", "id": .string((item?.id ?? substitute(row)).text),
            "reason": ["code": .string(parking.code), "text": words(parking.code)],
            "field": JSON(parking.field),
          ], owner: row.owner)
        try endSyncRunIfDone(row.owner, now)
      }
    }
  }

  // MARK: Progress

  /// One `sync_completed` when nothing of the owner's can be sent any more.
  func endSyncRunIfDone(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard let run = try syncRuns.find(of: owner), run.sent + run.parked > 0 else { return }
    if try queue.hasPending(of: owner) { return }
    if try queue.hasSending(of: owner) { return }
    if try queue.nextMS(of: owner) != nil { return }
    let waiting = try queue.counts(of: owner).waiting
    try syncRuns.end(of: owner)
    try meta.set(.lastSyncRun, .int(now.wallMS))
    try notify(
      [
        "type": "sync_completed", "sent": .int(run.sent), "parked": .int(run.parked),
        "waiting": .int(waiting), "duration_ms": .int(max(0, now.wallMS - run.startedMS)),
        "message": ["code": "sync_completed", "text": words("sync_completed")],
      ], owner: owner)
  }

  private func tellProgress(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard now.monotonicMS - events.lastProgressMS >= 200,
      let run = try syncRuns.find(of: owner)
    else { return }
    events.lastProgressMS = now.monotonicMS
    try events.tell(
      [
        "type": "sync_progress", "sent": .int(run.sent), "parked": .int(run.parked),
        "counts": countsJSON(try queue.counts(of: owner)),
      ], meta)
  }

  // MARK: Leases

  /// When the server is asked again about organisations that hold items; nil: none does.
  func heldDueMS(_ open: OpenSession, _ now: Instant) throws(Failure) -> Int64? {
    guard !guarding.wanted, try queue.hasWaitingForOrganisation(of: open.owner) else { return nil }
    return guarding.sinceMS + configuration.limits.pullIntervalMS - now.monotonicMS
  }

  /// Items in the hands of a process that died, or that is far too late, become pending again.
  func reclaimLeases(at now: Instant) throws(Failure) {
    for lease in try queue.leases() where lease.holder != holder.bytes {
      let isDead = !Holder.isAlive(lease.holder, bootID: now.bootID)
      if isDead || lease.untilMS <= now.wallMS { try queue.reclaim(from: lease.holder) }
    }
  }

  /// Items that were taken for an upload which a failure then kept from being made. Asked while none
  /// of this handle's is under way.
  func reclaimOwn() throws(Failure) {
    guard try queue.leases().contains(where: { $0.holder == holder.bytes }) else { return }
    try queue.reclaim(from: holder.bytes)
  }

  public func syncNow(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    _ = try requireSession()
    let now = clock.now()
    owesPull = true
    askGuard(now, anew: !guarding.confirmed, silently: true)
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
    var contacts: DatasetTable.Entry?
    var summary: DatasetTable.Entry?
    if let choice = open.choice {
      let org = cacheTag(choice, open, keys)
      (contacts, summary) = try withCache { (cache) throws(Failure) in
        (try cache.datasets.read(.contacts, of: org), try cache.datasets.read(.summary, of: org))
      }
    }
    return [
      "running": .bool(isFlying(.upload) || isFlying(.pull)),
      "counts": countsJSON(try queue.counts(of: open.owner)),
      "last_completed_ms": JSON(try meta.int(.lastSyncRun)),
      "not_before_ms": JSON(rest > now.wallMS ? rest : nil),
      "contacts": [
        "as_of_ms": JSON(contacts?.asOfMS), "reconciled_ms": JSON(contacts?.reconciledMS),
        "skipped": .int(contacts?.skipped ?? 0), "problem": JSON(contacts?.problem),
      ],
      "summary": ["as_of_ms": JSON(summary?.asOfMS)],
    ]
  }
}
