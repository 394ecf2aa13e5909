import Base
import Policy
import Store
import Supabase
import Vault

/// Applies the server's list of memberships, which proves what the user may enter.
///
/// One transaction stores the list, releases the items of usable organisations, withholds the items
/// of ended ones and erases their caches, forgets the denials of withheld items, and emits the end
/// of the chosen membership. `cache.db` is another file: its erasure commits first, then the rest
/// together, so no crash leaves a stored end with its data still cached. An erasure that fails is
/// owed, and tried again with each response.
final class MembershipUpdate {
  private let core: Core
  private let sessions: SessionStore
  private let check: MembershipCheck
  private let tokens: TokenState
  private let refresh: Refresh
  private let pauses: ServicePauses
  private let reachability: Reachability
  private let events: EventQueue
  private let cache: CacheFile
  private let pulls: PullState
  private let syncRun: SyncRunReporter
  private let inFlight: InFlight

  init(
    _ core: Core, _ sessions: SessionStore, check: MembershipCheck, tokens: TokenState,
    refresh: Refresh, pauses: ServicePauses, reachability: Reachability, events: EventQueue,
    cache: CacheFile, pulls: PullState, syncRun: SyncRunReporter, inFlight: InFlight
  ) {
    self.core = core
    self.sessions = sessions
    self.check = check
    self.tokens = tokens
    self.refresh = refresh
    self.pauses = pauses
    self.reachability = reachability
    self.events = events
    self.cache = cache
    self.pulls = pulls
    self.syncRun = syncRun
    self.inFlight = inFlight
  }

  func send(_ session: OpenSession, _ now: Instant) throws(Failure) {
    try inFlight.send(
      RestRequests.memberships(
        core.configuration.backend, user: session.userID, bearer: session.accessToken),
      .membershipCheck, generation: session.generation, now)
  }

  /// Process the response to `GET memberships`.
  func finish(_ response: HTTPResponse, _ now: Instant) throws(Failure) {
    guard let session = sessions.session else { return }
    let outcome = RestClassification.rest(response.facts)
    if outcome == .answered, let list = MembershipsReply.read(response.rows) {
      // "None at all" erases caches, and is what a service answers that does not know the token.
      if list.isEmpty, session.memberships?.isEmpty == false, !tokens.isConfirmed(now) {
        tokens.requireValidation()
        check.fail()
        return try pauses.backOff(.membershipCheck, response, now)
      }
      try apply(list, session, now)
      try pauses.succeed(.membershipCheck)
    } else if outcome == .needsToken {
      try refresh.refuseToken(.membershipCheck, response, now)
    } else {
      check.fail()
      reachability.noteFailure()
      try pauses.backOff(.membershipCheck, response, now)
    }
  }

  private func apply(
    _ listed: [Membership], _ session: OpenSession, _ now: Instant
  ) throws(Failure) {
    let before = session.memberships ?? []
    let chosen = session.chosen
    var list = listed
    // If the list lacks the chosen membership, keep it as ended, so that the decision can name it.
    if let chosen, !listed.contains(where: { $0.orgID == chosen.orgID }) {
      list.append(Membership(ended: chosen))
    }
    let keys = try core.keys()
    let sealed = try session.vault.seal(
      ["memberships": .array(list.map { $0.json })],
      SessionKeys.context("memberships", session.owner))
    let serverMS = try core.serverMS(now)
    let isStored = try core.database.transaction { () throws(Failure) in
      let row = try sessions.row()
      guard row.generation == session.generation else { return false }
      row.memberships = sealed
      row.noteValidation(now, serverMS: serverMS)
      row.membershipsMS = now.wallMS
      guard try core.sessionTable.write(row, expecting: session.generation) else { return false }
      for membership in list where membership.isUsable {
        try core.queue.release(org: keys.orgTag(membership.orgID), of: session.owner)
      }
      try holdEnded(list, before, session, keys)
      try reconcileChanged(list, before, session, keys)
      try syncRun.endIfDone(session.owner, now)
      if let chosen, chosen.isUsable {
        try emitEnd(of: chosen, list.first { $0.orgID == chosen.orgID }, session)
      }
      return true
    }
    guard isStored else { return }
    check.confirm()
    _ = try sessions.reload(try sessions.row())
  }

  /// Withhold the items of organisations that the user may no longer enter, and erase their caches.
  private func holdEnded(
    _ list: [Membership], _ before: [Membership], _ session: OpenSession, _ keys: KeyRing.Keys
  ) throws(Failure) {
    var ended = list.filter { !$0.isUsable }.map { $0.orgID }
    for old in before where !list.contains(where: { $0.orgID == old.orgID }) {
      ended.append(old.orgID)
    }
    for org in ended { try core.queue.withhold(org: keys.orgTag(org), of: session.owner) }
    // The end is stored even if the cache cannot be written.
    try cache.eraseOrOwe(ended.map { CacheNames.org($0, session, keys) })
    try core.queue.forgetDenials(of: session.owner)
  }

  /// A changed role may make other rows visible; reconcile.
  private func reconcileChanged(
    _ list: [Membership], _ before: [Membership], _ session: OpenSession, _ keys: KeyRing.Keys
  ) throws(Failure) {
    for membership in list where !before.contains(membership) {
      let tag = CacheNames.org(membership.orgID, session, keys)
      do throws(Failure) {
        try cache.use { (cache) throws(Failure) in try cache.datasets.expireReconcile(of: tag) }
      } catch {
        Log.line(.warning, "a reconcile could not be ordered: \(error.code.rawValue)")
      }
      pulls.requirePull()
    }
  }

  private func emitEnd(
    of before: Membership, _ after: Membership?, _ session: OpenSession
  ) throws(Failure) {
    let reason: Reason
    switch after {
    case nil: reason = .membershipRevoked
    case let it? where !it.active: reason = .membershipRevoked
    case let it? where !it.orgActive: reason = .orgDisabled
    case let it?
    where it.role != before.role && core.configuration.routes(for: it.role) == nil:
      reason = .roleUnknown
    default: return
    }
    try events.emitDurable(
      ["type": "org_access_changed", "reason": .string(reason.rawValue)], owner: session.owner)
  }
}
