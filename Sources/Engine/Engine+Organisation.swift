public import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  public func orgList(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let open = try requireSession()
    let row = try sessions.read()
    let known = open.memberships != nil
    return [
      "orgs": organisations(),
      "freshness": known ? (guarding.confirmed ? "confirmed" : "cached") : "none",
      "as_of_ms": known ? .int(row.membershipsMS) : .null,
    ]
  }

  public func orgSelect(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["org_id"])
    let id = try fields.uuid("org_id")
    let open = try requireSession()
    guard let membership = open.memberships?.first(where: { $0.orgID == id }) else {
      throw Failure(.orgNotAMember, "no membership in this organisation", field: "/org_id")
    }
    guard membership.active else {
      throw Failure(.orgRevoked, "the membership has ended", field: "/org_id")
    }
    guard membership.orgActive else {
      throw Failure(.orgDisabled, "the organisation is disabled", field: "/org_id")
    }
    guard configuration.routes(for: membership.role) != nil else {
      throw Failure(.orgUnknownRole, "the role is not in \"routes\"", field: "/org_id")
    }
    let reason: Reason =
      open.choice == nil ? .chosen : open.choice == id ? .active : .switched
    if open.choice != id, try !choose(id, open) {
      throw Failure(.storageBusy, "another process changed the session meanwhile")
    }
    let situation = try measure(.foreground).situation
    var verdict = SessionPolicy.decide(situation)
    if verdict.screen == .home { verdict.reason = reason }
    return try show(verdict)
  }

  /// Store the choice: what belonged to the one before is dropped with the generation, in one step.
  func choose(_ id: UUID, _ open: OpenSession) throws(Failure) -> Bool {
    let sealed = try open.vault.seal(
      ["org_id": .uuid(id)], Engine.sessionContext("choice", open.owner))
    let confirmed = guarding
    if configuration.limits.eraseOnSwitch, let left = open.choice {
      try eraseCache(of: cacheTag(left, open, try keys()))
    }
    let done = try swapSession(expecting: open.generation) { (row) throws(Failure) in
      row.choice = sealed
    }
    guard done else { return false }
    contactIndex = nil
    pulls.current = nil
    liveRequests = []
    events.withdraw("contact")
    _ = try synchronize(try sessions.read())
    guarding = confirmed
    owesPull = true
    return true
  }

  public func routeCheck(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["route"])
    let route = try fields.string("route", maximum: 2048)
    let situation = try measure(.navigate).situation
    let verdict = SessionPolicy.decide(situation)
    guard verdict.screen == .home, let chosen = open?.chosen,
      let routes = configuration.routes(for: chosen.role)
    else { return try present(situation) }
    if RoutePolicy.allows(route, screens: routes.screens, home: routes.home) {
      return ["allow": true]
    }
    var redirected = verdict
    redirected.reason = .routeForbidden
    return try render(redirected)
  }

  // MARK: The guard

  /// The server's list of memberships: proof of what the user may enter.
  func guarded(_ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    guard let open else { return }
    let verdict = RestClassification.rest(reply.facts)
    if verdict == .answered, let list = MembershipsReply.read(reply.body) {
      try store(list, open, now)
      try succeed(.rest)
    } else if verdict == .needsToken {
      try refuseToken(reply, now)
    } else {
      guarding.failed = true
      stale = true
      try backOff(.rest, reply, now)
    }
  }

  private func store(
    _ listed: [Membership], _ open: OpenSession, _ now: Instant
  ) throws(Failure) {
    let before = open.memberships
    let known = open.chosen
    var list = listed
    // The chosen one is kept when it has gone, so that the user can be told which it was.
    if let known, !listed.contains(where: { $0.orgID == known.orgID }) {
      list.append(Membership(ended: known))
    }
    let keys = try keys()
    let sealed = try open.vault.seal(
      ["memberships": .array(list.map { $0.json })],
      Engine.sessionContext("memberships", open.owner))
    let stored = try main.transaction { () throws(Failure) in
      let row = try sessions.read()
      guard row.generation == open.generation else { return false }
      row.memberships = sealed
      row.membershipsMS = now.wallMS
      row.validatedMS = now.wallMS
      row.rejections = 0
      guard try sessions.write(row, expecting: open.generation) else { return false }
      for org in list where org.isUsable {
        try queue.release(org: orgTag(org.orgID, keys), of: open.owner)
      }
      try holdEnded(list, before ?? [], open, keys)
      try reconcileChanged(list, before ?? [], open, keys)
      try endSyncRunIfDone(open.owner, now)
      if let known, known.isUsable {
        try noticeAccess(known, list.first { $0.orgID == known.orgID }, open)
      }
      return true
    }
    guard stored else { return }
    guarding.wanted = false
    guarding.confirmed = true
    guarding.failed = false
    self.open = nil
    _ = try synchronize(try sessions.read())
  }

  /// Organisations that let the user in no longer: their items wait, their cache goes.
  private func holdEnded(
    _ list: [Membership], _ before: [Membership], _ open: OpenSession, _ keys: KeyRing.Keys
  ) throws(Failure) {
    var ended = list.filter { !$0.isUsable }.map { $0.orgID }
    for old in before where !list.contains(where: { $0.orgID == old.orgID }) {
      ended.append(old.orgID)
    }
    for org in ended {
      try queue.withhold(org: orgTag(org, keys), of: open.owner)
      do throws(Failure) { try eraseCache(of: cacheTag(org, open, keys)) } catch {
        // A cache that cannot be written must not keep the end from being known: nothing of it is
        // shown from now on, and the next answer of the guard tries again.
        Log.line(.warning, "what is cached could not be erased: \(error.code.rawValue)")
      }
    }
    try queue.forgetDenials(of: open.owner)
  }

  /// What a membership that has changed shows may have changed as well, without a trace in the rows.
  private func reconcileChanged(
    _ list: [Membership], _ before: [Membership], _ open: OpenSession, _ keys: KeyRing.Keys
  ) throws(Failure) {
    for org in list where !before.contains(org) {
      let tag = cacheTag(org.orgID, open, keys)
      do throws(Failure) {
        try withCache { (cache) throws(Failure) in try cache.datasets.expireReconcile(of: tag) }
      } catch {
        Log.line(.warning, "a reconcile could not be ordered: \(error.code.rawValue)")
      }
      owesPull = true
    }
  }

  private func noticeAccess(
    _ before: Membership, _ after: Membership?, _ open: OpenSession
  ) throws(Failure) {
    let reason: Reason
    switch after {
    case nil: reason = .membershipRevoked
    case let it? where !it.active: reason = .membershipRevoked
    case let it? where !it.orgActive: reason = .orgDisabled
    case let it? where it.role != before.role && configuration.routes(for: it.role) == nil:
      reason = .roleUnknown
    default: return
    }
    try notify(
      ["type": "org_access_changed", "reason": .string(reason.rawValue)], owner: open.owner)
  }
}
