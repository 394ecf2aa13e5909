import Base
import Policy
import Store
import Supabase
import Vault

/// Settles the items of an upload, or of a question about them, by its response.
///
/// Three steps: what the response says (`UploadSituation.Answer`), what becomes of the items
/// (`UploadPolicy`), and one transaction that does it.
///
/// Only an id that the server names proves that an item is stored. The session may have changed since,
/// so every item is settled under its own owner, and only a response to the current session changes the
/// state of the token or the membership.
struct UploadSettlement: Rules {
  /// A question names its ids in the URL.
  static var mostInQuestion: Int { 100 }

  let parts: Parts

  /// A response, for whom it counts, and when it came.
  struct Received {
    let response: HTTPResponse
    let isCurrent: Bool
    let now: Instant
    /// The versions of the rows that it names.
    let versions: UploadVersions
  }

  /// Settle the items of a request that this handle still holds. After a jump of the clock another
  /// process may have taken them over, and the user may have changed them since.
  func finish(
    _ sent: UploadBatch, isCurrent: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let batch = try stillLeased(sent)
    guard !batch.isEmpty else { return }
    let received = Received(
      response: response, isCurrent: isCurrent, now: now,
      versions: UploadVersions(response, of: batch))
    let outcome = RestClassification.rest(response.facts)
    if outcome == .answered {
      if batch.request == .upload, batch.isByFunction {
        if let rows = UploadReply.rows(response.rows) { return try finish(batch, rows, received) }
      } else if let ids = UploadReply.storedIDs(response.rows) {
        if batch.request == .upload, isCurrent { problems.noteUpload(of: batch, nil, now) }
        return try finish(batch, naming: SortedUUIDSet(ids), received)
      }
    }
    let reason = ParkReason(outcome, batch, response)
    let answer = try answer(outcome, batch, reason, received)
    if batch.request == .upload { try noteWhatWorks(answer, batch, received) }
    try settle(batch, answer, reason, received)
  }

  /// The columns that a question about these items reads.
  func columns(of batch: UploadBatch) -> [String] {
    let showsDeleted = batch.kind.own?.deletion == .deletedAt ? ["deleted_at"] : []
    guard batch.request == .rows else { return [UploadSettlement.key] + showsDeleted }
    guard let own = batch.kind.own else { return batch.columns }
    if !batch.isCorrection { return batch.columns + showsDeleted }
    var columns = own.selected
    if let id = own.change?.id, !id.isEmpty { columns.append(id) }
    // Another version of the app may have kept other columns.
    for item in batch.items {
      guard let content = item.content else { continue }
      for column in content.compared(own) where !columns.contains(column) { columns.append(column) }
    }
    return columns
  }

  private static var key: String { "id" }

  func stillLeased(_ batch: UploadBatch) throws(Failure) -> UploadBatch {
    let leased = try core.queue.leased(by: core.holder.bytes)
    return batch.filter { leased.sortedContains($0.sequence) }
  }

  // MARK: 1. What the response says

  func answer(
    _ outcome: RestOutcome, _ batch: UploadBatch, _ reason: ParkReason, _ received: Received
  ) throws(Failure) -> UploadSituation.Answer {
    let response = received.response
    let isOwn = response.isOwn(.upload)
    if (200..<300).contains(response.status), response.isEmpty { return .nothing }
    let isQuestion = batch.request != .upload
    switch outcome {
    case .itemFault: return reason.isForGiven ? .refusedGiven : .refusedOther
    case .duplicateKey: return reason.isForGiven ? .takenGiven : .takenOther
    case .missingParent:
      if !isQuestion, try linkParents(batch) { return .parentQueued }
      return reason.isForGiven ? .refusedGiven : .refusedOther
    case .denied: return .denied
    case .needsToken:
      let isAgain = received.isCurrent && refresh.isTokenRefusedAgain(received.now)
      return isAgain ? .tokenAgain : .token
    case .tooLarge where isQuestion && !isOwn: return .firewall
    case .tooLarge:
      let isSmall = batch.items.count == 1 && batch.size <= UploadSize.smallBytes
      return !isOwn && isSmall ? .tooLargeForGateway : .tooLarge
    case .statementTimeout: return .tooSlow
    // A column that may not be changed is refused like a table that is not granted.
    case .schemaNotReady where batch.isCorrection && !isQuestion && reason.sqlstate == "42501":
      return .denied
    case .schemaNotReady where batch.lacksColumn(response): return .missingColumn
    case .schemaNotReady, .serverBug, .unknownRejection: return .schema
    case .answered, .endOfData, .transient: return isOwn ? .service : .gateway
    case .blocked: return .firewall
    }
  }

  /// Whether the single item follows one that is queued.
  private func linkParents(_ batch: UploadBatch) throws(Failure) -> Bool {
    guard batch.items.count == 1, let row = try core.queue.find(batch.items[0].tag) else {
      return false
    }
    let keys = try core.keys()
    guard let item = try row.read(try keys.queues.derived(for: row.owner)) else { return false }
    return try core.database.transaction { () throws(Failure) -> Bool in
      try links.linkParents(of: item, batch.kind, row.item, batch.owner, keys)
    }
  }

  /// The service judges uploads, or at least answers them.
  private func noteWhatWorks(
    _ answer: UploadSituation.Answer, _ batch: UploadBatch, _ received: Received
  ) throws(Failure) {
    switch answer {
    case .refusedGiven, .refusedOther, .takenGiven, .takenOther, .parentQueued, .denied,
      .missingColumn:
      try noteJudged(batch, received.now)
    case .schema: try noteWorking(batch)
    case .tooSlow where batch.items.count == 1: try noteWorking(batch)
    case .tooSlow, .tooLarge:
      if batch.items.count > 1 { uploads.size.refuse(tooLarge: batch.items.count) }
    default: break
    }
  }

  func noteJudged(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    uploads.noteJudged(now)
    try noteWorking(batch)
  }

  /// After an outage, items that were set aside in it are sent with the others.
  private func noteWorking(_ batch: UploadBatch) throws(Failure) {
    guard try pauses.succeed(.upload) else { return }
    try core.queue.endPausesAlone(of: batch.owner, most: Int64(ItemPause.manyAttempts))
  }

  /// The service has stored items of this batch, so its schema takes them: what waited for that is sent.
  func noteStored(_ batch: UploadBatch, _ now: Instant) throws(Failure) {
    try noteWorking(batch)
    guard uploads.noteStored(batch, group: try newestGroup(), now) else { return }
    try core.queue.endOwnPauses(of: batch.owner, batchKey: batch.key)
  }

  // MARK: 2. What becomes of the items

  /// `reason`: why they are parked, if the server refuses them.
  func settle(
    _ batch: UploadBatch, _ answer: UploadSituation.Answer, _ reason: ParkReason?,
    _ received: Received
  ) throws(Failure) {
    guard !batch.isEmpty else { return }
    let situation = try situation(batch, answer, received)
    let verdict = UploadPolicy.judge(situation)
    if received.isCurrent, let reason, UploadPolicy.isOfKind(verdict, situation) {
      problems.noteUpload(of: batch, reason, received.now)
    }
    try apply(verdict, batch, situation, reason, received)
  }

  private func situation(
    _ batch: UploadBatch, _ answer: UploadSituation.Answer, _ received: Received
  ) throws(Failure) -> UploadSituation {
    let (first, now) = (batch.items[0], received.now)
    var s = UploadSituation(answer)
    s.request = batch.request
    s.operation = batch.operation
    s.cause = batch.inquiry?.cause(now) ?? .unnamed
    s.isCurrent = received.isCurrent
    s.isSingle = batch.items.count == 1 && batch.inquiry?.isOfOne ?? true
    s.attempts = UploadSituation.Attempts(batch.attempts)
    s.membership = membership(batch)
    if s.operation != .insert, s.membership == .confirmed, isAboutMembership(s),
      !isHeldBefore(batch)
    {
      s.membership = .unconfirmed
    }
    s.asksForPause = received.response.asksForPause(.upload)
    s.othersSince =
      s.isSingle && (first.isRefused || !s.isRefusal)
      && uploads.storedOthers(since: first, of: batch)
    if batch.alone != nil {
      let isCounted = try !isEarly(first, now)
      let isLast =
        isCounted && ItemPause.isLast(after: first.history.failures, othersSince: s.othersSince)
      s.history = isLast ? .last : .alone
      // That an item fails which failed alone says nothing about others.
      s.othersWork = true
    } else {
      if batch.items.allSatisfy({ !$0.history.isClean }) { s.history = .refused }
      let failing = UploadPolicy.failing(s.request, s.cause, answer)
      s.othersWork = failing.map { uploads.noteFailed(batch, $0, now) } ?? uploads.works(now)
    }
    s.manyFail = uploads.manyFail
    if s.isSingle, s.history != .none || s.attempts == .many {
      s.othersQueued = try core.queue.hasOthers(
        like: batch.key, of: batch.owner, than: first.sequence)
    }
    let failures = try core.pauses.read(Purpose.upload.rawValue).attempts
    s.mayAskControl = ItemPause.mayAskControl(after: failures)
    return s
  }

  /// A membership that has ended looks the same.
  private func isAboutMembership(_ s: UploadSituation) -> Bool {
    switch s.answer {
    case .unnamed: true
    case .unchanged: !s.cause.isAboutTheWay
    case .denied: s.request == .upload
    default: false
    }
  }

  /// Whether the items were held until the memberships were listed anew. A confirmation from before tells
  /// nothing of a membership that has ended since, and that other requests failed is no reason to believe it.
  private func isHeldBefore(_ batch: UploadBatch) -> Bool {
    batch.items.allSatisfy { $0.history.isRefused }
  }

  private func membership(_ batch: UploadBatch) -> UploadSituation.Membership {
    guard let org = batch.org, core.configuration.backend.hasOrganisations else {
      return .notNeeded
    }
    let isMember = sessions.session?.membership(in: org)?.isUsable ?? false
    return check.isConfirmed && isMember ? .confirmed : .unconfirmed
  }

  /// Whether the item was tried before its pause ended, because the user asked for it. That counts for
  /// nothing.
  func isEarly(_ item: UploadBatch.Item, _ now: Instant) throws(Failure) -> Bool {
    item.history.isAlone ? item.pause.lasts(at: try core.steady(now)) : false
  }

  // MARK: Items that the answer names

  private func finish(
    _ batch: UploadBatch, naming ids: SortedUUIDSet, _ received: Received
  ) throws(Failure) {
    let now = received.now
    switch batch.request {
    case .control: return try settle(batch, .unnamed, nil, received)
    case .upload:
      if ids.isEmpty { try noteJudged(batch, now) } else { try noteStored(batch, now) }
      try settle(try eraseNamed(batch, ids, received), .unnamed, nil, received)
    case .rows, .ids:
      let absent: UploadBatch
      if batch.isCorrection {
        absent = try compareNamed(batch, received)
      } else {
        let same = batch.request == .rows ? try parkOthers(batch, received) : batch
        noteGone(same, received)
        absent = try eraseExisting(same, stored: ids, received)
      }
      // The server may cap its pages (PostgREST's `db-max-rows`) and does not say so: items are absent only
      // when it named none. Each question whose answer names some leaves fewer to ask for.
      let isPart = absent.items.count < batch.items.count && received.isCurrent
      if isPart, !absent.isEmpty { return uploads.add(readBack: absent) }
      for operation in UploadSituation.Operation.allCases {
        let same = absent.filter { $0.operation == operation }
        try settle(same, .unnamed, batch.inquiry?.reason, received)
      }
    }
  }

  /// Park the items under whose ids the server has other rows, or deleted ones; returns the others.
  private func parkOthers(
    _ batch: UploadBatch, _ received: Received
  ) throws(Failure) -> UploadBatch {
    let key = try core.keys().queues.derived(for: batch.owner)
    var (others, deleted): ([UUID], [UUID]) = ([], [])
    guard let rows = received.response.rows else { return batch }
    for row in rows {
      guard let id = row.uuid("id"), let item = batch.items.first(where: { $0.id == id }),
        let payload = try sentPayload(item, key)
      else { continue }
      if StoredRow.isOther(row.value, than: payload) {
        others.append(id)
      } else if !row.isNull("deleted_at") {
        deleted.append(id)
      }
    }
    let other = batch.filter { others.contains($0.id) }
    try parkTaken(other.filter { $0.isFirstAttempt }, .conflict, received.now)
    // It may be the item's own, as it was before.
    try parkTaken(other.filter { !$0.isFirstAttempt }, .unknownOutcome, received.now)
    try parkTaken(batch.filter { deleted.contains($0.id) }, .deletedElsewhere, received.now)
    return batch.filter { !others.contains($0.id) && !deleted.contains($0.id) }
  }

  /// Park items whose ids are taken. If they are sent again, that a row is there proves nothing.
  private func parkTaken(
    _ batch: UploadBatch, _ code: MessageCode, _ now: Instant
  ) throws(Failure) {
    guard !batch.isEmpty else { return }
    try core.database.transaction { () throws(Failure) in
      let key = try core.keys().queues.derived(for: batch.owner)
      for taken in batch.items {
        guard let row = try core.queue.find(taken.tag), let item = try row.read(key) else {
          continue
        }
        item.isRevised = true
        try core.queue.write(item, to: row, key)
      }
      try park(batch, ParkReason(code), now)
    }
  }

  /// Others have deleted the row of an item since it was stored: no list of its user's shows it.
  private func noteGone(_ batch: UploadBatch, _ received: Received) {
    guard batch.request == .ids, let rows = received.response.rows else { return }
    for row in rows where !row.isNull("deleted_at") {
      guard let id = row.uuid("id") else { continue }
      batch.items.first { $0.id == id }?.noteFound(row.value)
    }
  }

  private func sentPayload(
    _ item: UploadBatch.Item, _ key: Key
  ) throws(Failure) -> JSON? {
    if let content = item.content { return content.payload }
    return try core.queue.find(item.tag)?.read(key)?.payload
  }

  /// Erase the items that the upload has stored; returns the others. A batch that is stored whole tells that
  /// larger ones may pass.
  func eraseNamed(
    _ batch: UploadBatch, _ stored: SortedUUIDSet, _ received: Received
  ) throws(Failure) -> UploadBatch {
    try eraseProved(batch.filter { stored.contains($0.id) }, received)
    let others = batch.filter { !stored.contains($0.id) }
    if others.isEmpty, !batch.items[0].retryGroup.isSearched {
      uploads.size.store(batch.items.count)
    }
    return others
  }

  /// Erase the items that the server had before this request; returns the others. The row of an item
  /// that was edited may be the old one, and one that was cancelled is stored: it goes on as a correction, or,
  /// if its kind has none, the user decides, so it is parked.
  func eraseExisting(
    _ batch: UploadBatch, stored: SortedUUIDSet, _ received: Received
  ) throws(Failure) -> UploadBatch {
    let found = batch.filter { stored.contains($0.id) }
    /// Its row was read, and has its values; or no other payload of it can be there.
    func isProved(_ item: UploadBatch.Item) -> Bool {
      batch.request == .rows && item.isCompared || !item.isUnsure
    }
    let unsure = found.filter { !isProved($0) }
    try correct(unsure.filter { $0.mayFollow(batch.kind) }, received.now)
    for item in unsure.items where !item.mayFollow(batch.kind) {
      let code: MessageCode = item.isGone ? .deletedElsewhere : .unknownOutcome
      try park(batch.with([item]), ParkReason(code), received.now)
    }
    try eraseProved(found.filter(isProved), received)
    return batch.filter { !stored.contains($0.id) }
  }

  /// `isHidden`: of rows that are to be deleted, nothing but that they are not shown any more.
  func eraseProved(
    _ proved: UploadBatch, _ received: Received, isHidden: Bool = false
  ) throws(Failure) {
    guard !proved.isEmpty else { return }
    let now = received.now
    let versions = received.versions
    // Before they leave the queue: so the user's list always has them.
    try keepOwn(proved, versions, now)
    try core.database.transaction { () throws(Failure) in
      let done = try follow(proved, versions)
      try parkBelow(done, now)
      for item in done.items where item.operation == .deletion {
        try core.removeCancelled(item.tag, now, mayBeStored: isHidden)
      }
      try core.removeStored(done.items.filter { $0.operation != .deletion }.map { $0.tag }, now)
      try syncRuns.countStored(proved.items.map { $0.id }, of: proved.owner, now)
      // Within the transaction: a failed commit leaves a needless pull, never a missing one.
      pulls.requirePull()
      try syncRuns.endIfDone(proved.owner, now)
    }
    summaryCache.countSent(proved.items.compactMap { $0.counted }, of: proved, sessions.session)
    try syncRuns.emitProgress(proved.owner, now)
  }
}
