import Base
import Policy
import Store
import Supabase
import Vault

/// Uploads and read-backs that fail for a reason which may be one of their items, or of no item.
extension UploadSettlement {
  /// The failure blames no item. While others get through, the item at fault is found and set aside;
  /// otherwise all wait that the failure may be of (`DoubtPolicy`). `rejection`: a row was refused, so the
  /// item is parked if others got through after it was set aside (`BlamePolicy`).
  func doubt(
    _ batch: UploadBatch, _ fault: UploadFault, _ rejection: Rejection?, _ isCurrent: Bool,
    _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let first = batch.items.first else { return }
    if let rejection, batch.items.count == 1, state.othersGotThrough(since: first, of: batch) {
      return try parking.park(batch, rejection, now)
    }
    let step = DoubtPolicy.step(
      fault, attempts: batch.attempts, isSetAside: batch.isSetAside,
      // That an item fails which was set aside says nothing about others.
      works: batch.isSetAside || state.noteFailed(batch, fault, now),
      asksForPause: response.asksForPause(.upload))
    switch step {
    case .find where batch.items.count > 1:
      let groups = try isolation.bisect(batch, .attempt)
      if rejection != nil {
        for group in groups { state.noteRefused(first.retryGroup, now: group) }
      }
    case .find: try waitAlone(batch, isRefused: rejection != nil, response, now)
    case .ask where isCurrent:
      try askWhetherOpen(batch, mayPass: true, isCurrent, response, now)
    case .wait where fault == .batchKey:
      if try isLongAlone(batch) {
        return try waitAlone(batch, isRefused: rejection != nil, response, now)
      }
      try suspend(batch, response, now)
    case .wait, .ask: try pause([batch], response, now)
    }
  }

  /// Each of these items fails alone, and waits for itself. `isRefused`: a row was refused.
  func waitAlone(
    _ batch: UploadBatch, isRefused: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      for item in batch.items {
        let failure = state.noteFailing(item, of: batch)
        // While the whole kind waits, the item waits no longer.
        var mayGrow = failure.othersGotThroughSinceLast
        if !mayGrow { mayGrow = try !hasOthers(item, of: batch) }
        try isolation.setAside(item, failure, mayGrow: mayGrow, response, now)
        if isRefused { try noteRefused(item) } else { try isolation.moveToEnd(item) }
      }
      try syncRuns.endIfDone(batch.owner, now)
    }
  }

  /// The item is refused: its new retry group tells what is stored after it.
  func noteRefused(_ item: UploadBatch.Item) throws(Failure) {
    let group = try isolation.nextGroup()
    try core.queue.assign(item.sequence, retryGroup: group)
    state.noteRefused(item.retryGroup, now: group)
  }

  /// Whether this single item has failed for so long that it waits for itself, since no other waits with it.
  private func isLongAlone(_ batch: UploadBatch) throws(Failure) -> Bool {
    guard batch.items.count == 1, batch.attempts >= Int64(Backoff.aloneAfter) else { return false }
    return try !hasOthers(batch.items[0], of: batch)
  }

  private func hasOthers(
    _ item: UploadBatch.Item, of batch: UploadBatch
  ) throws(Failure) -> Bool {
    try core.queue.hasOthers(like: batch.key, of: batch.owner, than: item.sequence)
  }

  /// Something on the way may have refused these items: ask the service which of them it has. Its
  /// answer tells that the way is open.
  func askWhetherOpen(
    _ batch: UploadBatch, mayPass: Bool = false, _ isCurrent: Bool, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    let block = UploadBatch.Block(batch, mayPass: mayPass, response, now)
    try enqueueReadBack(batch.doubted(.blocked(response), block: block), isCurrent)
  }

  /// Not the items' fault: the service backs off, in the transaction that counts the attempt.
  func pause(
    _ batches: [UploadBatch], _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      for batch in batches { try isolation.retry(try stillLeased(batch)) }
      try pauses.backOff(.upload, response, now)
    }
    reachability.noteFailure()
  }

  /// The service works but stores no item of this batch key, for instance because the table is
  /// missing. The batch key waits, and then one item probes; nothing is parked, and others continue.
  /// Each probe may be another item, so the wait grows with their number, too.
  private func suspend(
    _ batch: UploadBatch, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let first = batch.items.first else { return }
    let delay = Backoff.delayMS(
      attempt: max(Int(clamping: batch.attempts + 1), state.noteWait(batch)), random: Random.word(),
      floorMS: response.floorMS(for: .upload))
    try core.database.transaction { () throws(Failure) in
      let until = try core.steadyToStore(now) + delay
      try isolation.retry(batch)
      try core.queue.suspend(like: first.sequence, of: batch.owner, response.wait(until: until))
    }
  }

  // MARK: A read-back without an answer

  /// It is unknown which of these items are stored. `isRefused`: the service itself refuses the question,
  /// for instance because nobody may read the table. Then it works, and no other item waits.
  func finishUnanswered(
    _ batch: UploadBatch, isRefused: Bool, _ isCurrent: Bool, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    // The session has changed since; its refusal says nothing about these items.
    if isRefused, !isCurrent { return try isolation.release(batch, .attempt) }
    // An outage gives a transient answer, too, and is not asked twice.
    if isCurrent, !response.isOwn(.upload), RestClassification.rest(response.facts) != .transient,
      asksControl(batch, now)
    {
      return
    }
    if isAtFault(batch, isRefused: isRefused, response, now) {
      return try setAside(batch, isRefused: isRefused, response, now)
    }
    try wait(batch, response, now)
  }

  /// After a question that something on the way refused: ask about an id that nobody has. Returns false
  /// if that was just done or, not long ago, in vain.
  func asksControl(_ batch: UploadBatch, _ now: Instant) -> Bool {
    guard batch.question != .control, state.mayAskControl(now) else { return false }
    state.add(control: batch)
    return true
  }

  /// The answer to a question about an id that nobody has, after something on the way refused to ask
  /// about these items. If the service answers, then the way is open, and these items are refused.
  func finishControl(
    _ batch: UploadBatch, _ outcome: RestOutcome, _ isCurrent: Bool, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    if !isCurrent { return try isolation.release(batch, .attempt) }
    let isAnswered = outcome == .answered && UploadReply.storedIDs(response.rows) != nil
    guard isAnswered || outcome.isOwnRefusal(response) else {
      state.noteUnansweredControl(now)
      return try finishUnanswered(batch, isRefused: false, isCurrent, response, now)
    }
    guard let block = batch.block else {
      return try setAside(batch, isRefused: false, mayPass: false, response, now)
    }
    try core.database.transaction { () throws(Failure) in
      try noteUntold(batch)
      try finishBlocked(batch, block, response, now)
    }
  }

  /// Send these items again later, which stores nothing twice. All others wait, too.
  private func wait(
    _ batch: UploadBatch, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    // Other parts of an upload that was refused on the way are in the same case.
    let others = batch.block == nil ? [] : state.takeBlockedReadBacks()
    try core.database.transaction { () throws(Failure) in
      try letOthersFirst(batch)
      try pause([batch] + others, response, now)
    }
  }

  /// What becomes of other items tells whether uploads get through.
  func letOthersFirst(_ batch: UploadBatch) throws(Failure) {
    guard batch.block == nil else { return }
    for item in batch.items { try isolation.moveToEnd(item) }
  }

  /// Whether a question that was not answered makes only its own items wait.
  func isAtFault(
    _ batch: UploadBatch, isRefused: Bool, _ response: HTTPResponse, _ now: Instant
  ) -> Bool {
    let fault: UploadFault =
      isRefused ? .batchKey : response.isOwn(.upload) ? .service : .onTheWay
    let step = DoubtPolicy.step(
      fault, attempts: batch.attempts, isSetAside: batch.isSetAside,
      works: isRefused || state.noteFailed(batch, fault, now),
      asksForPause: response.asksForPause(.upload))
    return step != .wait
  }

  /// Each of these items waits for itself, with pauses that grow, and is parked at last: the user
  /// decides. A question that something on the way refuses is halved first.
  func setAside(
    _ batch: UploadBatch, isRefused: Bool, mayPass: Bool = true, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    if !isRefused, batch.items.count > 1 {
      try isolation.split(batch, .attempt)
      return
    }
    try core.database.transaction { () throws(Failure) in
      for item in batch.items {
        // At first the refusal may pass: the items share the next request.
        if isRefused, item.blocks == 0, item.attempts < DoubtPolicy.suspectAfter {
          try isolation.delay(item, response, now)
          continue
        }
        let one = batch.with([item])
        try noteUntold(one)
        if try blocked.postpone(item, of: batch, mayPass: mayPass && !isRefused, now) { continue }
        if item.isCancelled { try forgetCancel(item, batch.owner) }
        let reason = batch.block == nil ? nil : batch.doubt
        try parking.park(one, reason ?? Rejection(.unknownOutcome), now)
      }
      try syncRuns.endIfDone(batch.owner, now)
    }
  }

  /// The server was asked about these items, and has not said whether it has them.
  func noteUntold(_ batch: UploadBatch) throws(Failure) {
    let key = try core.keys().queues.derived(for: batch.owner)
    for sent in batch.items {
      guard let row = try core.queue.find(sent.tag), let item = try row.read(key) else { continue }
      try core.queue.noteCounted(item, row, key)
    }
  }
}
