import Base
import Policy
import Store
import Supabase
import Vault

/// `sync_now`, `sync_status`, and the state of sync that `next` gives.
struct SyncControl: Rules {
  let parts: Parts

  /// Check the memberships, pull and send next. A pause that a server asked for goes on, and
  /// so does that of a refresh that failed: the auth service is not asked more often because a user pulls.
  func start(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (session, _) = try decider.requireSendable()
    let now = core.clock.now()
    try pauses.endUnasked { !$0.isAuth }
    try core.queue.endOwnPauses(of: session.owner)
    pulls.requirePull()
    check.askSilently(check.isConfirmed ? .keepingAnswer : .discardingAnswer, now)
    let hold = try refresh.uploadHold(now)
    // A refresh that is sent next holds nothing back.
    let reason = hold?.code == .token && hold?.pause == nil ? hold?.last?.code : hold?.code
    return ["started": .bool(reason == nil), "reason": JSON(reason?.rawValue)]
  }

  private static func json(_ rows: DatasetTable.Entry?) -> JSON {
    [
      "as_of_ms": JSON(rows?.asOfMS), "reconciled_ms": JSON(rows?.reconciledMS),
      "skipped": .int(rows?.skipped ?? 0), "problem": JSON(rows?.problem),
    ]
  }

  /// The same of the user's own rows of each kind.
  private func own(_ session: OpenSession) throws(Failure) -> JSON {
    let list = JSON.array([])
    let keys = try core.keys()
    for kind in core.configuration.backend.kinds where kind.own != nil {
      let set = CacheNames.own(kind.name, session.choice, session.owner, keys)
      let status = SyncControl.json(
        try cache.use { (tables) throws(Failure) in try tables.datasets.read(.rows, of: set) })
      status.set("kind", .string(kind.name))
      list.append(status)
    }
    return list
  }

  /// What is known of the cached data of the user's organisation. nil: they have not chosen one.
  private func datasets(
    _ session: OpenSession
  ) throws(Failure) -> (contacts: DatasetTable.Entry?, summary: DatasetTable.Entry?) {
    guard !core.configuration.backend.hasOrganisations || session.choice != nil else {
      return (nil, nil)
    }
    let org = CacheNames.org(session.choice, session, try core.keys())
    return try cache.use { (tables) throws(Failure) in
      (try tables.datasets.read(.rows, of: org), try tables.datasets.read(.summary, of: org))
    }
  }

  func status(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let session = try decider.requireSession()
    let now = core.clock.now()
    let pause = try refresh.uploadHold(now)?.last
    let (contacts, summary) = try datasets(session)
    let backend = core.configuration.backend
    return [
      "running": .bool(inFlight.contains(.upload) || inFlight.contains(.pull)),
      "counts": try core.queue.counts(of: session.owner).json,
      "last_completed_ms": JSON(try core.meta.int(.lastSyncRun)),
      "not_before_ms": JSON(pause?.untilMS), "pause": JSON(pause?.code.rawValue),
      "contacts": backend.has(.contacts) ? SyncControl.json(contacts) : .null,
      "own": try own(session),
      "summary": backend.has(.summary) ? ["as_of_ms": JSON(summary?.asOfMS)] : .null,
      "problems": problems.json,
    ]
  }

  /// The state of sync, with the run that goes on or has just ended.
  func describe(_ report: RunReport?) throws(Failure) -> JSON {
    let owner = try core.sessionTable.read().owner
    let run = report?.owner == owner ? report : nil
    let counts = try owner.map { (owner) throws(Failure) in try core.queue.counts(of: owner) }
    let session = try decider.assessUnchanged().flatMap {
      decider.canUse($0.situation) ? sessions.session : nil
    }
    // A cache that cannot be read hides nothing else.
    let (contacts, summary) = session.flatMap { try? datasets($0) } ?? (nil, nil)
    let (waiting, ids) = (counts?.waiting ?? 0, run?.ids ?? [])
    return [
      "running": .bool(run != nil && run?.outcome == nil),
      "sent": .int(run?.sent ?? 0), "parked": .int(run?.parked ?? 0),
      "left": .int((counts?.pending ?? 0) + (counts?.sending ?? 0) + waiting),
      "waiting": .int(waiting),
      "ids": .array(ids), "ids_truncated": .bool(Int64(ids.count) < run?.sent ?? 0),
      "duration_ms": .int(run?.durationMS ?? 0),
      "message": run?.outcome.map { core.message($0) } ?? .null,
      "contacts_ms": JSON(contacts?.asOfMS), "summary_ms": JSON(summary?.asOfMS),
    ]
  }
}
