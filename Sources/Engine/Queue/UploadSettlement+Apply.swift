import Base
import Policy
import Store
import Supabase
import Vault

// MARK: 3. Doing it

extension UploadSettlement {
  /// Do what the verdict says, in one transaction.
  func apply(
    _ verdict: UploadVerdict, _ batch: UploadBatch, _ s: UploadSituation, _ reason: ParkReason?,
    _ received: Received
  ) throws(Failure) {
    let (response, now) = (received.response, received.now)
    switch verdict {
    // What the answer names, `finish` has erased. What is to be deleted has no row.
    case .stored:
      guard s.operation == .deletion else { return }
      return try eraseAbsent(batch, received, isHidden: s.answer == .unnamed)
    case .readBack(let cause):
      let isOfWay = cause.isAboutTheWay
      return ask(batch, cause, isOfWay ? .blocked(response) : reason, now)
    case .ask(let request): return uploads.add(readBack: batch.asking(request))
    default: break
    }
    let others = verdict.awaitsService ? uploads.takeReadBacksAboutTheWay() : []
    try core.database.transaction { () throws(Failure) in
      if isUntold(verdict, s) { try noteUntold(batch) }
      switch verdict {
      case .stored, .readBack, .ask: break
      case .again(let isCharged): try release(batch, charged: isCharged)
      case .search(let isCharged): try search(batch, charged: isCharged)
      case .halve(let isCharged):
        if s.answer != .tooLarge, s.answer != .tooSlow { uploads.size.refuse() }
        try halve(batch, charged: isCharged, isRefused: s.isRefusal)
      case .wait(let wait, let isCharged):
        try self.wait(wait, batch, s, reason, isCharged, received)
      case .park(let code):
        // Their users have edited these meanwhile: what was refused is not in them any more.
        let edited = try core.queue.edited(by: core.holder.bytes)
        try release(batch.filter { edited.sortedContains($0.sequence) }, charged: true)
        try park(
          batch.filter { !edited.sortedContains($0.sequence) },
          self.reason(code, batch, reason, response), now)
      }
      if batch.items.count == 1, verdict.isFound { try spareRest(of: batch) }
      for other in others { try retry(try stillLeased(other)) }
      if UploadPolicy.pausesAll(verdict, s) { try pauses.backOff(.upload, response, now) }
    }
    if verdict.awaitsService { reachability.noteFailure() }
    // The run ends when the check has answered: it releases the items, or they stay held.
    if case .wait(.organisation, _) = verdict {
      // One that was asked for before may say what was true then.
      inFlight.remove(.membershipCheck)
      check.askSilently(.discardingAnswer, now)
    }
  }

  // MARK: Questions

  /// Ask which of these items the server has. The rows of corrections, and of items that were not sent before, are
  /// compared with the items.
  func ask(
    _ batch: UploadBatch, _ cause: UploadSituation.Cause, _ reason: ParkReason?, _ now: Instant
  ) {
    let inquiry = UploadBatch.Inquiry(
      cause: cause, reason: reason, isOfOne: batch.items.count == 1, sinceMS: now.monotonicMS)
    ask(batch.filter { !$0.isCompared }.asking(.ids, inquiry))
    ask(batch.filter { $0.isCompared }.asking(.rows, inquiry))
  }

  private func ask(_ batch: UploadBatch) {
    var start = 0
    while start < batch.items.count {
      let end = min(start + UploadSettlement.mostInQuestion, batch.items.count)
      uploads.add(readBack: batch.with(Array(batch.items[start..<end])))
      start = end
    }
  }

  /// Whether the server was asked about these items and has not said whether it has them.
  private func isUntold(_ verdict: UploadVerdict, _ s: UploadSituation) -> Bool {
    guard s.request != .upload, s.request == .control || s.answer != .unnamed else { return false }
    return verdict.isSearch || verdict == .park(.blocked) || verdict == .park(.unknownOutcome)
  }

  /// The server may have these items.
  private func noteUntold(_ batch: UploadBatch) throws(Failure) {
    let key = try core.keys().queues.derived(for: batch.owner)
    for sent in batch.items {
      guard let row = try core.queue.find(sent.tag), let item = try row.read(key) else { continue }
      try core.queue.noteCounted(item, row, key)
    }
  }

  /// The server does not have these items: what the user asked for is done. `isHidden`: all that is
  /// known is that they are not shown. One that was stored may be there, which its user is told.
  private func eraseAbsent(
    _ batch: UploadBatch, _ received: Received, isHidden: Bool
  ) throws(Failure) {
    try eraseProved(batch.filter { !$0.isCancelled }, received, isHidden: isHidden)
    let cancelled = batch.filter { $0.isCancelled }
    if cancelled.isEmpty { return }
    try core.database.transaction { () throws(Failure) in
      // Those that their users want after all are sent.
      let edited = try core.queue.edited(by: core.holder.bytes)
      try release(cancelled.filter { edited.sortedContains($0.sequence) })
      for item in cancelled.items where !edited.sortedContains(item.sequence) {
        try core.removeCancelled(item.tag, received.now)
        try core.queue.releaseDependents(of: item.tag)
      }
      try syncRuns.endIfDone(batch.owner, received.now)
    }
  }

  // MARK: Sending again

  func release(_ batch: UploadBatch, charged isCharged: Bool = false) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      for item in batch.items {
        try core.queue.transition(item.sequence, .pending, charged: isCharged)
      }
    }
  }

  // MARK: Waiting

  private func wait(
    _ wait: UploadWait, _ batch: UploadBatch, _ s: UploadSituation, _ reason: ParkReason?,
    _ isCharged: Bool, _ received: Received
  ) throws(Failure) {
    let (response, now) = (received.response, received.now)
    guard let first = batch.items.first else { return }
    switch wait {
    case .parent:
      try core.queue.transition(first.sequence, .waiting(.dependency), charged: isCharged)
      try syncRuns.endIfDone(batch.owner, now)
    case .organisation:
      let group = try nextGroup()
      for item in batch.items {
        try core.queue.transition(
          item.sequence, .waiting(.organisation), charged: isCharged,
          history: item.history.isClean || s.operation != .insert ? .refused(since: group) : nil,
          retryGroup: group)
      }
    case .time:
      for item in batch.items {
        let pause = try pause(after: item.attempts + 1, response, now)
        try core.queue.transition(item.sequence, .waiting(response.wait(pause)), charged: true)
      }
    case .itself(let failure):
      let refusal = s.isRefusal ? reason : nil
      for item in batch.items { try waitAlone(item, failure, s, refusal, now) }
      try syncRuns.endIfDone(batch.owner, now)
    case .kind:
      // Each probe may be another item, so the wait grows with their number, too.
      let number = max(batch.attempts + 1, Int64(uploads.noteWait(batch)))
      let pause = try pause(after: number, response, now)
      try retry(batch)
      try core.queue.pause(like: first.sequence, of: batch.owner, response.wait(pause))
    case .service:
      if isCharged { try retry(batch) } else { try release(batch) }
      // What becomes of other items tells whether uploads get through.
      if s.request != .upload, !s.cause.isAboutTheWay { try moveToEnd(batch) }
    }
  }

  /// The pause after so many failures.
  private func pause(
    after number: Int64, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) -> Pause {
    let delay = Backoff.delayMS(
      attempt: Int(clamping: number), random: Random.word(),
      floorMS: response.floorMS(for: .upload))
    return try core.pause(delay, now)
  }

  // MARK: Parking

  private func reason(
    _ code: MessageCode, _ batch: UploadBatch, _ reason: ParkReason?, _ response: HTTPResponse
  ) -> ParkReason {
    switch code {
    case .tooLong, .missingColumn: ParkReason(code, response)
    case .blocked: batch.inquiry?.reason ?? .blocked(response)
    case .rejected, .conflict, .changedElsewhere: reason ?? ParkReason(code)
    default: ParkReason(code)
    }
  }

  /// An item that was cancelled no longer is, also if that was while it was sent: the user decides anew.
  func park(_ batch: UploadBatch, _ reason: ParkReason, _ now: Instant) throws(Failure) {
    guard !batch.isEmpty else { return }
    try core.database.transaction { () throws(Failure) in
      let key = try core.keys().queues.derived(for: batch.owner)
      var rows: [QueueRow] = []
      for item in batch.items {
        guard let row = try core.queue.find(item.tag) else { continue }
        if item.isCancelled || batch.kind.own != nil { try core.takeCancelBack(row, key) }
        rows.append(row)
      }
      try park(rows, reason, now)
    }
    // Its user's list does not show it any more once they have dropped what they wanted of it.
    if reason.code == .deletedElsewhere {
      try keep([], without: batch.items.map { (id: $0.id, version: "") }, of: batch, now)
    }
  }

  /// Park items with the reason, each with a notice.
  func park(_ rows: [QueueRow], _ reason: ParkReason, _ now: Instant) throws(Failure) {
    if rows.isEmpty { return }
    let keys = try core.keys()
    try core.database.transaction { () throws(Failure) in
      for row in rows {
        let key = try keys.queues.derived(for: row.owner)
        let item = try row.read(key)
        if let item, row.attempts > 0 && item.mayBeOlder || reason.code == .unknownOutcome {
          try core.queue.noteCounted(item, row, key)
        }
        try core.queue.transition(
          row.sequence, .parked, rejection: try reason.sealed(for: row, key))
        try core.syncRuns.count(of: row.owner, sent: 0, parked: 1, now: try core.steadyToStore(now))
        try notices.add(
          "item_parked", reason: reason.code.rawValue,
          ["id": .uuid(item?.id ?? row.substituteID), "field": JSON(reason.field)],
          owner: row.owner)
        try syncRuns.endIfDone(row.owner, now)
      }
    }
  }
}

extension QueueTable {
  /// The server may have this item. The summary is read while the item is parked or waits for hours,
  /// and may count it: see `Registered`.
  func noteCounted(
    _ item: QueueItem, _ row: QueueRow, _ key: Key
  ) throws(Failure) {
    if item.mayBeCounted { return }
    item.mayBeCounted = true
    try write(item, to: row, key)
  }

  /// Write an item whose payload is as it was.
  func write(_ item: QueueItem, to row: QueueRow, _ key: Key) throws(Failure) {
    (row.body, row.size) = try item.sealed(row.item, row.owner, key, isAccepted: true)
    try write(row)
  }
}

extension UploadVerdict {
  /// The item at fault is found.
  fileprivate var isFound: Bool {
    switch self {
    case .wait(.itself, _), .park: true
    default: false
    }
  }
}
