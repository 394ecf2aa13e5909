import Base
import Policy
import Store
import Supabase
import Vault

/// Decides from a response what becomes of every item of a batch.
///
/// | response | the items |
/// |---|---|
/// | ids | those named are erased, the others read back |
/// | a function's rows | each by its result; without one, charged and their batch key waits |
/// | refused for what a user gave | searched (`UploadHand`); a single one is parked (`BlamePolicy`) |
/// | refused for anything else | see `doubt`: searched while others are stored, else their batch key waits |
/// | duplicate key | split; a single one is read back, then erased, or refused as above |
/// | a parent is missing | split; a single one waits for its queued parent, or is refused as above |
/// | denied | wait for their organisation; denied again as a confirmed member: refused as above |
/// | the token was refused | sent again with a new token |
/// | too large | split; a single one is parked, or as below if a gateway says so of a small one |
/// | the statement took too long | split; a single one as below |
/// | the table takes nothing | that batch key waits, or the item at fault: see `doubt` |
/// | it has no such column, nor has the configuration | they are parked |
/// | refused on the way, by a firewall or a captive portal | asked about, then see `BlockedItems` |
/// | anything passing | sent again, charged; the service backs off, or see `doubt` |
///
/// Charged means attempts + 1; a parked item is charged, too. `BatchIsolation.retry` splits a charged
/// batch after several attempts.
///
/// Only an id that the server names proves that an item is stored. The session may have changed
/// since, so every item is settled under its own owner, and only a response to the current session
/// changes the state of the token or the membership.
final class UploadSettlement {
  /// A read-back names its ids in the URL.
  private static var readBackItems: Int { 100 }

  let core: Core
  private let sessions: SessionStore
  let state: UploadState
  let isolation: BatchIsolation
  let links: ItemLinks
  let syncRuns: SyncRunReporter
  private let refresh: Refresh
  private let check: MembershipCheck
  let pauses: ServicePauses
  let reachability: Reachability
  let parking: Parking
  let blocked: BlockedItems
  private let pulls: PullState
  private let summary: Summary

  init(
    _ core: Core, _ sessions: SessionStore, state: UploadState, isolation: BatchIsolation,
    links: ItemLinks, syncRuns: SyncRunReporter, refresh: Refresh, check: MembershipCheck,
    pauses: ServicePauses, reachability: Reachability, parking: Parking, blocked: BlockedItems,
    pulls: PullState, summary: Summary
  ) {
    self.core = core
    self.sessions = sessions
    self.state = state
    self.isolation = isolation
    self.links = links
    self.syncRuns = syncRuns
    self.refresh = refresh
    self.check = check
    self.pauses = pauses
    self.reachability = reachability
    self.parking = parking
    self.blocked = blocked
    self.pulls = pulls
    self.summary = summary
  }

  /// The items of the batch that this handle still holds. After a jump of the clock another process
  /// may have taken them over, and the user may have changed them since.
  func stillLeased(_ batch: UploadBatch) throws(Failure) -> UploadBatch {
    let leased = try core.queue.leased(by: core.holder.bytes)
    return batch.filter { leased.sortedContains($0.sequence) }
  }

  // MARK: The response to an upload

  func finish(
    _ sent: UploadBatch, isCurrent: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let outcome = RestClassification.rest(response.facts)
    if try finishInHand(sent, outcome, response, now) { return }
    let batch = try stillLeased(sent)
    guard !batch.isEmpty else { return }
    if outcome.ground != nil { try noteJudged(batch, now) }
    let rejection = Rejection(outcome, batch, response)
    switch outcome {
    case .answered: try finishAnswered(batch, isCurrent, response, now)
    case .itemFault: try blame(batch, rejection, response, now)
    case .duplicateKey:
      if batch.items.count > 1 {
        guard rejection.isForGiven else { return try blame(batch, rejection, response, now) }
        try isolation.split(batch)
        return
      }
      // The item was stored before with this id, or another unique key conflicts.
      try enqueueReadBack(batch.doubted(rejection), isCurrent)
    case .missingParent:
      if batch.items.count > 1, rejection.isForGiven {
        try isolation.split(batch)
        return
      }
      try awaitParent(batch, rejection, response, now)
    case .denied:
      // The session has changed since; its refusal says nothing about these items.
      if !isCurrent { return try isolation.release(batch) }
      try deny(batch, rejection, response, now)
    case .needsToken:
      guard isCurrent, refresh.isTokenRefusedAgain(now) else { return try isolation.release(batch) }
      // A new token does not help. Perhaps something on the way answers 401 to one of these items: the
      // read-back, which has the same token, tells.
      try askWhetherOpen(batch, isCurrent, response, now)
    case .tooLarge where batch.items.count > 1, .statementTimeout where batch.items.count > 1:
      state.noteTooLarge(batch)
      try isolation.split(batch, outcome == .statementTimeout ? .attempt : .nothing)
    case .tooLarge where !response.isOwn(.upload) && batch.size <= BatchPolicy.smallBytes:
      // It is not: a gateway refuses the item for something else.
      try askWhetherOpen(batch, isCurrent, response, now)
    case .tooLarge:
      try blame(batch, Rejection(code: ItemFault.tooLong.rawValue, response), response, now)
    case .schemaNotReady where batch.lacksColumn(response):
      try noteJudged(batch, now)
      try parking.park(batch, Rejection(code: MessageCode.missingColumn.rawValue, response), now)
    case .statementTimeout, .schemaNotReady, .serverBug, .unknownRejection:
      // The service answers: it is this table or function that fails.
      try noteWorking(batch)
      try doubt(batch, .batchKey, nil, isCurrent, response, now)
    case .endOfData, .transient:
      try doubt(
        batch, response.isOwn(.upload) ? .service : .onTheWay, nil, isCurrent, response, now)
    case .blocked: try askWhetherOpen(batch, isCurrent, response, now)
    }
  }

  private func finishAnswered(
    _ batch: UploadBatch, _ isCurrent: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if batch.kind.upload == .rpc {
      guard let rows = UploadReply.rows(response.rows) else {
        return try doubt(batch, .onTheWay, nil, isCurrent, response, now)
      }
      return try finishRows(batch, rows, isCurrent, response, now)
    }
    guard let ids = UploadReply.storedIDs(response.rows) else {
      return try doubt(batch, .onTheWay, nil, isCurrent, response, now)
    }
    if ids.isEmpty { try noteJudged(batch, now) } else { try noteStored(batch, now) }
    let missing = try erase(batch, stored: SortedUUIDSet(ids), now)
    if missing.isEmpty { state.growBatches(batch.items.count) }
    try enqueueReadBack(missing, isCurrent)
  }

  /// The service has judged the upload, so it works. An answer that cannot be used says no such thing.
  func noteJudged(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    state.noteJudged(now)
    try noteWorking(batch)
  }

  /// The service answers uploads. After an outage, items that were set aside in it are sent with the others.
  private func noteWorking(_ batch: UploadBatch) throws(Failure) {
    if try pauses.succeed(.upload) { try core.queue.endWaitsAlone(of: batch.owner) }
  }

  /// The service has stored items of this batch, so its schema takes them: what waited for that is sent.
  func noteStored(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    try noteWorking(batch)
    let group = try core.meta.int(.retryGroup) ?? 0
    guard state.noteStored(batch, group: group, now) else { return }
    try core.queue.endOwnWaits(of: batch.owner, batchKey: batch.key)
  }

  // MARK: The response to a read-back

  /// Ask which of these items the server has. Another user's session may not ask. The rows of items
  /// that were not sent before are compared with the items. Whatever becomes of the question, the items
  /// were in an upload that the server may have stored: without its answer they are charged with an
  /// attempt, so that a later edit knows.
  func enqueueReadBack(_ batch: UploadBatch, _ isCurrent: Bool) throws(Failure) {
    guard isCurrent else { return try isolation.release(batch, .attempt) }
    ask(about: batch.filter { !$0.isFirstAttempt })
    ask(about: batch.filter { $0.isFirstAttempt }.asking(.rows))
  }

  /// Ask in requests of their own which of these items the server has.
  func ask(about batch: UploadBatch) {
    var start = 0
    while start < batch.items.count {
      let end = min(start + UploadSettlement.readBackItems, batch.items.count)
      state.add(readBack: batch.with(Array(batch.items[start..<end])))
      start = end
    }
  }

  func finishReadBack(
    _ sent: UploadBatch, isCurrent: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let batch = try stillLeased(sent)
    guard !batch.isEmpty else { return }
    let outcome = RestClassification.rest(response.facts)
    if outcome == .needsToken {
      let isAgain = isCurrent && refresh.isTokenRefusedAgain(now)
      if batch.question == .control { state.noteUnansweredControl(now) }
      if isAgain, asksControl(batch, now) { return }
      // A new token does not help, while uploads with it get through.
      if isAgain, batch.block == nil, isAtFault(batch, isRefused: false, response, now) {
        return try setAside(batch, isRefused: false, response, now)
      }
      try letOthersFirst(batch)
      try isolation.release(batch, batch.block?.isOwn == true ? .nothing : .attempt)
      if isAgain { try pauses.backOff(.upload, response, now) }
      return
    }
    if batch.question == .control {
      return try finishControl(batch, outcome, isCurrent, response, now)
    }
    if batch.comparesRows, outcome.mayConcernColumns {
      // The user may not read every column: compare nothing then.
      guard isCurrent else { return try isolation.release(batch, .attempt) }
      return ask(about: batch.asking(.ids))
    }
    if let block = batch.block, isCurrent, outcome.isOwnRefusal(response) {
      // The user may not read the table, but the service is there. It has not said what it has.
      return try core.database.transaction { () throws(Failure) in
        try noteUntold(batch)
        try finishBlocked(batch, block, response, now)
      }
    }
    guard outcome == .answered, let ids = UploadReply.storedIDs(response.rows) else {
      return try finishUnanswered(
        batch, isRefused: outcome.isOwnRefusal(response), isCurrent, response, now)
    }
    let same = batch.comparesRows ? try parkOthers(batch, response.rows, now) : batch
    let absent = try eraseExisting(same, stored: SortedUUIDSet(ids), now)
    guard !absent.isEmpty else { return }
    if !isCurrent { return try isolation.release(absent, .attempt) }
    // The server may cap its pages (PostgREST's `db-max-rows`) and does not say so: items are absent
    // only when it returned none. Each read-back that returns some leaves fewer to ask for.
    if absent.items.count < batch.items.count { return state.add(readBack: absent) }
    if let block = batch.block { return try finishBlocked(absent, block, response, now) }
    try finishAbsent(absent, response, now)
  }

  /// The service answered and has not named these items, which were refused on the way.
  func finishBlocked(
    _ batch: UploadBatch, _ block: UploadBatch.Block, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if try !blocked.settle(batch, block, response, now) {
      try finishAbsent(batch, response, now)
    }
  }

  private func finishAbsent(
    _ absent: UploadBatch, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    // The id was not stored and cannot be read. With a confirmed membership, another user owns it:
    // park. Otherwise hold. A membership that has ended since it was confirmed hides the user's own rows
    // as well, so the check that confirms it runs after the first time.
    let wasHeld = absent.block != nil || absent.items.allSatisfy { $0.denials > 0 }
    if let doubt = absent.doubt, !doubt.isForGiven {
      try removeCancelled(absent.filter { $0.isCancelled }, now)
      try self.doubt(absent.filter { !$0.isCancelled }, .batchKey, doubt, true, response, now)
    } else if isFree(absent) || wasHeld && isMember(of: absent.org) {
      try removeCancelled(absent.filter { $0.isCancelled }, now)
      try parking.park(absent.filter { !$0.isCancelled }, absent.doubt ?? Rejection(.conflict), now)
    } else {
      try hold(absent, charge: .attemptAndDenial, now)
    }
  }

  /// Park the items under whose ids the server has other rows; returns the others.
  private func parkOthers(
    _ batch: UploadBatch, _ rows: ResponseRows?, _ now: Instant
  ) throws(Failure) -> UploadBatch {
    let key = try core.keys().queues.derived(for: batch.owner)
    var others: [UUID] = []
    guard let rows else { return batch }
    for row in rows {
      guard let id = row.uuid("id"), let item = batch.items.first(where: { $0.id == id }),
        let payload = try core.queue.find(item.tag)?.read(key)?.payload
      else { continue }
      if StoredRow.isOther(row, than: payload) { others.append(id) }
    }
    try parking.park(batch.filter { others.contains($0.id) }, Rejection(.conflict), now)
    return batch.filter { !others.contains($0.id) }
  }

  /// Whether no membership decides: the app has no organisations, or had none when the items were added.
  private func isFree(_ batch: UploadBatch) -> Bool {
    batch.org == nil || !core.configuration.backend.hasOrganisations
  }

  /// Whether the server has confirmed the membership in this process.
  private func isMember(of org: UUID?) -> Bool {
    guard let org, check.isConfirmed else { return false }
    return sessions.session?.membership(in: org)?.isUsable ?? false
  }

  // MARK: Stored

  /// Erase the items that the request has stored; returns the others.
  func erase(
    _ batch: UploadBatch, stored: SortedUUIDSet, _ now: Instant
  ) throws(Failure) -> UploadBatch {
    try eraseProved(batch.filter { stored.contains($0.id) }, now)
    return batch.filter { !stored.contains($0.id) }
  }

  /// Erase the items that the server had before this request; returns the others. The row of an item
  /// that was edited may be the old one, and one that was cancelled is stored: the user decides, so it
  /// is parked.
  func eraseExisting(
    _ batch: UploadBatch, stored: SortedUUIDSet, _ now: Instant
  ) throws(Failure) -> UploadBatch {
    let found = batch.filter { stored.contains($0.id) }
    let doubtful = found.filter { $0.isRevised || $0.isCancelled }
    try core.database.transaction { () throws(Failure) in
      for item in doubtful.items where item.isCancelled { try forgetCancel(item, batch.owner) }
      try parking.park(doubtful, Rejection(.unknownOutcome), now)
    }
    try eraseProved(found.filter { !$0.isRevised && !$0.isCancelled }, now)
    return batch.filter { !stored.contains($0.id) }
  }

  /// `more` joins the transaction.
  func eraseProved(
    _ proved: UploadBatch, _ now: Instant,
    _ more: () throws(Failure) -> Void = { () throws(Failure) in }
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      try more()
      try core.removeStored(proved.items.map { $0.tag }, now)
      if !proved.isEmpty {
        try syncRuns.countStored(proved.items.map { $0.id }, of: proved.owner, now)
        // Within the transaction: a failed commit leaves a needless pull, never a missing one.
        pulls.requirePull()
      }
      try syncRuns.endIfDone(proved.owner, now)
    }
    guard !proved.isEmpty else { return }
    summary.countSent(proved, sessions.session)
    try syncRuns.emitProgress(proved.owner, now)
  }

  // MARK: Cancelled

  /// The server does not have these items: what the user asked for is done.
  private func removeCancelled(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    guard !batch.isEmpty else { return }
    try core.database.transaction { () throws(Failure) in
      for item in batch.items {
        try core.removeCancelled(item.tag, now)
        try core.queue.releaseDependents(of: item.tag)
      }
      try syncRuns.endIfDone(batch.owner, now)
    }
  }

  /// The server has the item: it can no longer be cancelled, and the user decides.
  func forgetCancel(_ sent: UploadBatch.Item, _ owner: [UInt8]) throws(Failure) {
    let key = try core.keys().queues.derived(for: owner)
    guard let row = try core.queue.find(sent.tag) else { return }
    try core.queue.setCancelled(row, false, key)
  }

  // MARK: Not stored

  /// The service refused a row (`BlamePolicy`): park a single item, search several, or let others tell
  /// whose fault it is.
  func blame(
    _ batch: UploadBatch, _ rejection: Rejection, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard rejection.isForGiven else {
      return try doubt(batch, .batchKey, rejection, true, response, now)
    }
    guard batch.items.count > 1 else { return try parking.park(batch, rejection, now) }
    state.shrinkBatches()
    try isolation.accuse(batch.items)
  }

  /// Let a single item wait for its parent if that is queued; else it is refused.
  func awaitParent(
    _ batch: UploadBatch, _ rejection: Rejection, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard batch.items.count == 1, let sent = batch.items.first else {
      return try blame(batch, rejection, response, now)
    }
    let keys = try core.keys()
    let waits = try core.database.transaction { () throws(Failure) -> Bool in
      guard let row = try core.queue.find(sent.tag),
        let item = try row.read(try keys.queues.derived(for: row.owner)),
        try links.linkParents(of: item, batch.kind, sent.tag, batch.owner, keys)
      else { return false }
      try core.queue.transition(sent.sequence, .waiting(.dependency))
      try syncRuns.endIfDone(batch.owner, now)
      return true
    }
    if !waits { try blame(batch, rejection, response, now) }
  }

  /// A policy of the server refused the items. At first they wait, and the membership check runs.
  /// If the membership is then confirmed and an item is denied again, or where no membership decides, the
  /// rows are refused.
  func deny(
    _ batch: UploadBatch, _ rejection: Rejection, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if isFree(batch) || batch.items.contains(where: { $0.denials > 0 }) && isMember(of: batch.org) {
      return try blame(batch, rejection, response, now)
    }
    try hold(batch, charge: .denial, now)
    // A function has stored others beside it.
    if rejection.isForGiven { for item in batch.items { try noteRefused(item) } }
  }

  private func hold(
    _ batch: UploadBatch, charge: Transition.Charge, _ now: Instant
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      for item in batch.items {
        try core.queue.transition(
          item.sequence, .waiting(.organisation, charge: charge))
      }
    }
    // The run ends when the check has answered: it releases the items, or they stay held.
    check.askSilently(.discardingAnswer, now)
  }
}
