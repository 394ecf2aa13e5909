import Base
import Policy
import Store
import Supabase
import Vault

/// `sync_now` and `sync_status`.
final class SyncControl {
  private let core: Core
  private let check: MembershipCheck
  private let reachability: Reachability
  private let pauses: ServicePauses
  private let inFlight: InFlight
  private let pulls: PullState
  private let cache: CacheFile
  private let decider: Decider

  init(
    _ core: Core, check: MembershipCheck, reachability: Reachability, pauses: ServicePauses,
    inFlight: InFlight, pulls: PullState, cache: CacheFile, decider: Decider
  ) {
    self.core = core
    self.check = check
    self.reachability = reachability
    self.pauses = pauses
    self.inFlight = inFlight
    self.pulls = pulls
    self.cache = cache
    self.decider = decider
  }

  /// Check the memberships, pull and send with the next polls. A pause that the server asked for
  /// stays.
  func start(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    _ = try decider.requireSession()
    let now = core.clock.now()
    try pauses.endUnasked { !$0.isAuth }
    pulls.requirePull()
    check.askSilently(check.isConfirmed ? .keepingAnswer : .discardingAnswer, now)
    if !reachability.isOnline { return ["started": false, "reason": "offline"] }
    if try pauses.leftMS(.upload, now) > 0 {
      return ["started": false, "reason": "back_off"]
    }
    return ["started": true, "reason": .null]
  }

  func status(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (session, keys) = (try decider.requireSession(), try core.keys())
    let now = core.clock.now()
    let uploadMS = try pauses.notBeforeMS(.upload)
    var contacts: DatasetTable.Entry?
    var summary: DatasetTable.Entry?
    if let choice = session.choice {
      let org = CacheNames.org(choice, session, keys)
      (contacts, summary) = try cache.use { (tables) throws(Failure) in
        (try tables.datasets.read(.contacts, of: org), try tables.datasets.read(.summary, of: org))
      }
    }
    return [
      "running": .bool(inFlight.contains(.upload) || inFlight.contains(.pull)),
      "counts": try core.queue.counts(of: session.owner).json,
      "last_completed_ms": JSON(try core.meta.int(.lastSyncRun)),
      "not_before_ms": JSON(uploadMS > now.wallMS ? uploadMS : nil),
      "contacts": [
        "as_of_ms": JSON(contacts?.asOfMS), "reconciled_ms": JSON(contacts?.reconciledMS),
        "skipped": .int(contacts?.skipped ?? 0), "problem": JSON(contacts?.problem),
      ],
      "summary": ["as_of_ms": JSON(summary?.asOfMS)],
    ]
  }
}
