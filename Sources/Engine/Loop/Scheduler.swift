import Base
import Policy
import Store
import Supabase

/// Chooses the next request, and computes when the host should ask again.
///
/// `next` and the queries after a call only read. Changes that must come first, such as reclaiming
/// a dead process's lease, are made by `prepare`, which only `HostLoop` calls. A pending preparation is
/// a reason to ask.
struct Scheduler: Rules {
  /// A request that can be sent now.
  enum Job {
    case refresh(OpenSession)
    case validate(OpenSession)
    case membershipCheck(OpenSession)
    case signIn(PendingSignIn)
    /// With the session whose token an order may use.
    indirect case revoke(RevocationTable.Job, OpenSession?)
    case upload(OpenSession)
    indirect case readBack(OpenSession, UploadBatch)
    indirect case rows(OpenSession, UUID?)
    indirect case summary(OpenSession, UUID?)
    indirect case live(OpenSession, LiveRequest)

    var purpose: Purpose {
      switch self {
      case .refresh: .refresh
      case .validate: .validate
      case .membershipCheck: .membershipCheck
      case .signIn: .signIn
      case .revoke: .revoke
      case .upload, .readBack: .upload
      case .rows: .pull
      case .summary: .summary
      case .live: .live
      }
    }
  }

  /// What has to change before the next request can be chosen, in this order.
  private enum Preparation: Int {
    /// A recovery waits for the keys that are there now, or another process changed the session.
    case assess
    /// Somebody has waited for an organisation for a pull interval: check the memberships again.
    case checkMembership
    /// Items wait for an organisation, and the configuration has none any more.
    case releaseHeld
    /// The read-backs belong to another user.
    case abandonReadBacks
    case reclaimLeases
    /// Items have a state that this version does not know.
    case settleStates
    /// Items wait for others that are not in the queue.
    case restoreLinks
    /// Items wait because another handle does not know their kind: this one may.
    case releaseKnownKinds
    /// Items have waited until their time.
    case promote
  }

  /// A response that storage did not take is worked off again after this time.
  private static var retryMS: Int64 { 1000 }
  /// The key store sends no notice; ask every 10 s.
  private static var keyStoreIntervalMS: Int64 { 10_000 }
  /// How often to check another process's refresh: it may end long before its lease.
  private static var refreshIntervalMS: Int64 { 1000 }

  let parts: Parts

  // MARK: What is sent next

  /// The most urgent request that can be sent now, or nil. Changes nothing.
  func next(_ now: Instant) throws(Failure) -> Job? {
    guard reachability.isOnline else { return nil }
    let hasKeys = core.keyRing.keys != nil
    if hasKeys || core.keyRing.isProvisional, let pending = pendingSignIn.pending,
      !inFlight.contains(pending),
      try pauses.leftMS(.signIn, now) <= 0
    {
      return .signIn(pending)
    }
    guard hasKeys else { return nil }
    // Each order has a pause of its own.
    if !inFlight.contains(.revoke),
      let job = try core.revocations.due(now: core.steady(now), longestMS: Backoff.maxDelayMS)
    {
      return .revoke(job, try freshSession(now))
    }
    guard let (session, row) = try usableSession() else { return nil }
    if try refresh.isNeeded(session, row, now) {
      guard try maySend(.refresh, now), try refresh.isFree(now) else { return nil }
      return .refresh(session)
    }
    if tokens.needsValidation, try maySend(.validate, now) { return .validate(session) }
    if check.isNeeded, try maySend(.membershipCheck, now) { return .membershipCheck(session) }
    // Several reads may be in flight: they are for screens that wait.
    if let request = live.next, try pauses.leftMS(.live, now) <= 0 {
      return .live(session, request)
    }
    // An upload would change what a read returns: reads follow the last upload that can be sent.
    guard !inFlight.contains(.upload) else { return nil }
    if try pauses.leftMS(.upload, now) <= 0 {
      if let batch = uploads.readBacks.first, batch.owner == session.owner {
        return .readBack(session, batch)
      }
      if try core.queue.hasPending(of: session.owner) { return .upload(session) }
    }
    return try nextPull(session, now)
  }

  /// The next read. Nothing is read while any process sends an item: an older row must not hide
  /// what the user just wrote, and no item may be counted twice.
  private func nextPull(_ session: OpenSession, _ now: Instant) throws(Failure) -> Job? {
    let org = session.choice
    guard core.configuration.mayCache(org, session),
      try !core.queue.hasSending(of: session.owner)
    else { return nil }
    if rowPuller.isDue(org, now), try maySend(.pull, now) { return .rows(session, org) }
    if summary.isDue(now), try maySend(.summary, now),
      try !core.queue.mayBeStored(
        org: try org == nil ? nil : core.keys().orgTag(org), of: session.owner)
    {
      return .summary(session, org)
    }
    return nil
  }

  /// The session, if it may be used now. Reads memory and the row, and changes nothing.
  private func usableSession() throws(Failure) -> (OpenSession, SessionRow)? {
    guard let assessment = try decider.assessUnchanged(),
      decider.canSend(assessment.situation), let session = sessions.session
    else { return nil }
    return (session, assessment.row)
  }

  /// The session, if its token can be sent now.
  private func freshSession(_ now: Instant) throws(Failure) -> OpenSession? {
    guard let (session, row) = try usableSession(), try !refresh.isNeeded(session, row, now) else {
      return nil
    }
    return session
  }

  /// Whether no request of this purpose is in flight and none of its own failures holds it up.
  private func maySend(_ purpose: Purpose, _ now: Instant) throws(Failure) -> Bool {
    if inFlight.contains(purpose) { return false }
    return try pauses.leftMS(purpose, now) <= 0
  }

  // MARK: Preparing

  /// Do what has to be done before `next` can choose, each thing at most once.
  func prepare(_ now: Instant) throws(Failure) {
    if try asksForKeys(now) { _ = try decider.assess(.navigate) }
    var done = -1
    while let preparation = try preparation(now), preparation.rawValue > done {
      done = preparation.rawValue
      switch preparation {
      case .assess: _ = try decider.assess(.navigate)
      case .checkMembership: check.ask(.keepingAnswer, now)
      case .releaseHeld:
        guard let session = sessions.session else { return }
        try core.queue.release(org: nil, of: session.owner)
      case .abandonReadBacks: try uploader.abandonReadBacks()
      case .reclaimLeases: try uploader.reclaimLostLeases(now, late: core.steady(now))
      case .settleStates:
        guard let session = sessions.session else { return }
        try core.queue.settleStates(of: session.owner)
      case .restoreLinks:
        guard let session = sessions.session else { return }
        try links.restore(of: session.owner)
      case .releaseKnownKinds:
        guard let session = sessions.session else { return }
        try uploader.releaseKnownKinds(session)
      case .promote:
        guard let session = sessions.session else { return }
        try core.queue.promote(of: session.owner, now: core.steady(now))
      }
    }
  }

  private func preparation(_ now: Instant) throws(Failure) -> Preparation? {
    guard reachability.isOnline, !decider.awaitsKeys else { return nil }
    if try decider.assessUnchanged() == nil { return .assess }
    guard let session = try freshSession(now) else { return nil }
    if let due = try nextHeldCheckMS(session, now), due <= 0 { return .checkMembership }
    if !core.configuration.backend.hasOrganisations,
      try core.queue.hasWaitingForOrganisation(of: session.owner)
    {
      return .releaseHeld
    }
    guard !inFlight.contains(.upload) else { return nil }
    if let batch = uploads.readBacks.first {
      return batch.owner == session.owner ? nil : .abandonReadBacks
    }
    if try uploader.hasLostLeases(now) { return .reclaimLeases }
    if try core.queue.hasUnknownStates(of: session.owner) { return .settleStates }
    if try links.areLost(of: session.owner) { return .restoreLinks }
    if try uploader.hasHeldKinds(session) { return .releaseKnownKinds }
    if let left = try pauseLeftMS(session, now), left <= 0 { return .promote }
    return nil
  }

  /// Whether `holdfast_next` itself asks the key store for the keys of the stored session: nobody has come to this
  /// handle, as in a background worker that only runs the loop. Not with an expired token: at a start that locks
  /// the session, and a refresh before the user comes would hide it.
  private func asksForKeys(_ now: Instant) throws(Failure) -> Bool {
    guard hostView.visit == .nobody, decider.awaitsKeys, reachability.isOnline else { return false }
    let row = try sessions.row()
    guard row.owner != nil else { return false }
    return try !tokens.isExpired(row, now)
  }

  /// Whether the session goes on once the key store has its keys: also one that counts as lost may be there again.
  private func watchesKeys(_ now: Instant) throws(Failure) -> Bool {
    let isShown = hostView.shown.isWaiting || hostView.shown.screen == .signIn
    return try isShown && decider.awaitsKeys ? true : asksForKeys(now)
  }

  /// How long until the next membership check of somebody who waits for one: they have no usable organisation, or
  /// items of theirs wait for one. nil: nobody waits.
  private func nextHeldCheckMS(
    _ session: OpenSession, _ now: Instant
  ) throws(Failure) -> Int64? {
    guard core.configuration.backend.hasOrganisations, !check.isNeeded,
      let memberships = session.memberships
    else { return nil }
    if memberships.contains(where: { core.configuration.state(of: $0) == .active }),
      try !core.queue.hasWaitingForOrganisation(of: session.owner)
    {
      return nil
    }
    return core.configuration.limits.pullIntervalMS - check.ageMS(now)
  }

  /// How long until the first pause of items ends; nil when there is none.
  private func pauseLeftMS(
    _ session: OpenSession, _ now: Instant
  ) throws(Failure) -> Int64? {
    try core.queue.leftMS(of: session.owner, now: core.steady(now))
  }

  // MARK: When to ask

  /// Whether there is something to give, or to do before. A host that takes only news does not learn that a
  /// request can be sent.
  func hasWork(_ what: Wanted, _ now: Instant) throws(Failure) -> Bool {
    if what.includesNews, !news.isEmpty { return true }
    if !core.keyRing.wasAsked, try asksForKeys(now) { return true }
    if what.includesRequests, inFlight.holdsMade { return true }
    if !inFlight.late(now).isEmpty || live.firstEnded(now) != nil { return true }
    if let pending = pendingSignIn.pending, pending.deadlineMS <= now.monotonicMS { return true }
    if what.includesNews, try notices.hasAny() { return true }
    // Before the preparations, because usually there is a request to send, and finding it takes fewer
    // statements.
    if what.includesRequests, try next(now) != nil { return true }
    if try preparation(now) != nil { return true }
    return try decider.hasUntoldDecision(now)
  }

  /// Milliseconds until there is work; 0: now; nil: nothing becomes due by time alone.
  func nextWakeMS(_ what: Wanted, _ now: Instant) throws(Failure) -> Int64? {
    if try hasWork(what, now) { return 0 }
    var next: Int64?
    func consider(_ milliseconds: Int64?) {
      // A time already due but not sendable is blocked by another condition below; skip it.
      guard let milliseconds, milliseconds > 0 else { return }
      next = min(next ?? Int64.max, milliseconds)
    }
    for request in inFlight.requests {
      consider(request.response == nil ? request.deadlineMS - now.monotonicMS : Scheduler.retryMS)
    }
    consider(live.nextDeadlineMS.map { $0 - now.monotonicMS })
    if let pending = pendingSignIn.pending { consider(pending.deadlineMS - now.monotonicMS) }
    if hostView.shown.isWaiting, check.isNeeded, reachability.isOnline {
      consider(check.timeoutLeftMS(now))
    }
    if try watchesKeys(now) { consider(Scheduler.keyStoreIntervalMS) }
    guard reachability.isOnline, core.keyRing.keys != nil else { return next }
    for purpose in Purpose.allCases { consider(try pauses.leftMS(purpose, now)) }
    let time = try core.steady(now)
    consider(try core.revocations.next().map { $0 - time })
    guard let session = sessions.session else { return next }
    consider(try refresh.heldForMS(now).map { min($0, Scheduler.refreshIntervalMS) })
    consider(
      try tokens.lifeLeftMS(try sessions.row(), now) - tokens.refreshMarginMS(session))
    consider(try pauseLeftMS(session, now))
    consider(try uploader.nextLeaseCheckMS(now))
    consider(nextPullMS(session, now))
    consider(try nextHeldCheckMS(session, now))
    return next
  }

  /// How long until the cache is old enough to be pulled again.
  private func nextPullMS(_ session: OpenSession, _ now: Instant) -> Int64? {
    let backend = core.configuration.backend
    guard !backend.hasOrganisations || session.choice != nil, let first = pulls.oldestMS else {
      return nil
    }
    return first + core.configuration.limits.pullIntervalMS - now.monotonicMS
  }
}
