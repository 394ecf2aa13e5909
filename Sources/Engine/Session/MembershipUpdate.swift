import Base
import Policy
import Store
import Supabase
import Vault

/// Applies the server's list of memberships, which proves what the user may enter.
///
/// The list is read in pages. A membership on any page counts. A missing one has ended only if the list was read to its
/// end and every row could be used. The chosen membership is confirmed by a list that has it, or that proves its end.
///
/// One transaction stores the list, releases the items of usable organisations, withholds the items
/// of ended ones and erases their caches, forgets the denials of withheld items, and emits the end
/// of the chosen membership. `cache.db` is another file: its erasure commits first, then the rest
/// together, so no crash leaves a stored end with its data still cached. An erasure that fails is
/// owed, and tried again with each response.
struct MembershipUpdate: Rules {
  let parts: Parts

  func send(_ session: OpenSession, _ now: Instant) throws(Failure) {
    let read = check.read
    try inFlight.send(
      RestRequests.memberships(
        core.configuration.backend, user: session.userID, after: read.after,
        bearer: session.accessToken),
      .membershipCheck(read), generation: session.generation, now)
  }

  /// Process the response to `GET memberships`. `before`: what the pages before it have brought.
  func finish(
    _ before: MembershipRead, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let session = sessions.session else { return }
    let outcome = RestClassification.rest(response.facts)
    if outcome == .needsToken { return try refresh.refuseToken(.membershipCheck, response, now) }
    guard outcome == .answered, let rows = response.rows else { return try fail(response, now) }
    var read = before
    read.add(MembershipsPage(rows))
    guard read.isOver else {
      check.goOn(read)
      try pauses.succeed(.membershipCheck)
      return
    }
    problems.noteMemberships(read, now)
    if read.all.isEmpty {
      guard read.isWhole else { return try fail(response, now) }
      // "None at all" erases caches, and is what a service answers that does not know the token.
      if session.memberships?.isEmpty == false, !tokens.isConfirmed(now) {
        tokens.requireValidation()
        check.fail()
        return try pauses.backOff(.membershipCheck, response, now)
      }
    }
    guard try apply(read, session, now) else { return try fail(response, now) }
    try pauses.succeed(.membershipCheck)
  }

  private func fail(_ response: HTTPResponse, _ now: Instant) throws(Failure) {
    check.fail()
    reachability.noteFailure()
    try pauses.backOff(.membershipCheck, response, now)
  }

  /// Store what the list proves. Returns whether it says something about the chosen membership.
  private func apply(
    _ read: MembershipRead, _ session: OpenSession, _ now: Instant
  ) throws(Failure) -> Bool {
    let before = MembershipList(session.memberships ?? [])
    let listed = MembershipList(read.all)
    let chosen = session.chosen
    let confirms = read.isWhole || chosen.map { listed[$0.orgID] != nil } ?? true
    let missing = before.all.filter { listed[$0.orgID] == nil }
    let ended = listed.all.filter { !$0.isUsable } + (read.isWhole ? missing : [])
    var list = listed.all
    if !read.isWhole {
      list += missing
    } else if let chosen, listed[chosen.orgID] == nil {
      // Keep it as ended, so that the decision can name it.
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
      if confirms { row.membershipsMS = now.wallMS }
      guard try core.sessionTable.write(row, expecting: session.generation) else { return false }
      for org in try queued(listed.all.filter { $0.isUsable }, session, keys, waiting: true) {
        try core.queue.release(org: org, of: session.owner)
      }
      try holdEnded(ended, session, keys)
      try reconcile(listed.all.filter { before[$0.orgID] != $0 }, session, keys)
      try syncRuns.endIfDone(session.owner, now)
      if let chosen, chosen.isUsable {
        try emitEnd(of: chosen, list.first { $0.orgID == chosen.orgID }, session)
      }
      return true
    }
    guard isStored else { return true }
    if confirms { check.confirm() }
    _ = try sessions.reload(try sessions.row())
    return confirms
  }

  /// The tags of those of the organisations that have queued items, or items that wait for them.
  private func queued(
    _ memberships: [Membership], _ session: OpenSession, _ keys: KeyRing.Keys, waiting: Bool
  ) throws(Failure) -> [[UInt8]] {
    guard !memberships.isEmpty else { return [] }
    let orgs = try core.queue.organisations(of: session.owner, waiting: waiting)
    guard !orgs.isEmpty else { return [] }
    let tags = SortedUUIDSet(memberships.compactMap { UUID(bytes: keys.orgTag($0.orgID)) })
    return orgs.filter { org in UUID(bytes: org).map { tags.contains($0) } ?? false }
  }

  /// Withhold the items of organisations that the user may no longer enter, and erase their caches.
  private func holdEnded(
    _ ended: [Membership], _ session: OpenSession, _ keys: KeyRing.Keys
  ) throws(Failure) {
    for org in try queued(ended, session, keys, waiting: false) {
      try core.queue.withhold(org: org, of: session.owner)
    }
    // The end is stored even if the cache cannot be written.
    try cache.eraseOrOwe(ended.map { CacheNames.org($0.orgID, session, keys) })
    try core.queue.forgetDenials(of: session.owner)
  }

  /// A changed role may make other rows visible; reconcile. If that cannot be noted, all rows are read anew.
  private func reconcile(
    _ changed: [Membership], _ session: OpenSession, _ keys: KeyRing.Keys
  ) throws(Failure) {
    guard !changed.isEmpty else { return }
    let orgs = changed.map { CacheNames.org($0.orgID, session, keys) }
    do throws(Failure) {
      try cache.use { (cache) throws(Failure) in
        try cache.database.transaction { () throws(Failure) in
          for org in orgs { try cache.datasets.expireReconciles(in: org) }
        }
      }
    } catch  where !core.reads.mustRunAgain {
      Log.warning("a reconcile could not be ordered", error)
      try cache.eraseOrOwe(orgs)
    }
    pulls.requirePull()
  }

  private func emitEnd(
    of before: Membership, _ after: Membership?, _ session: OpenSession
  ) throws(Failure) {
    let state = core.configuration.state(of: after)
    guard state != core.configuration.state(of: before), let reason = state.obstacle else { return }
    try notices.add("org_access_changed", reason: reason.rawValue, owner: session.owner)
  }
}
