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
  private let hold: UploadHold
  private let inFlight: InFlight
  private let pulls: PullState
  private let cache: CacheFile
  private let problems: Problems
  private let decider: Decider

  init(
    _ core: Core, check: MembershipCheck, reachability: Reachability, pauses: ServicePauses,
    hold: UploadHold, inFlight: InFlight, pulls: PullState, cache: CacheFile, problems: Problems,
    decider: Decider
  ) {
    self.core = core
    self.check = check
    self.reachability = reachability
    self.pauses = pauses
    self.hold = hold
    self.inFlight = inFlight
    self.pulls = pulls
    self.cache = cache
    self.problems = problems
    self.decider = decider
  }

  /// Check the memberships, pull and send with the next polls. What a server put off stays put off, and
  /// so does a refresh that failed: the auth service is not asked more often because a user pulls.
  func start(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (session, _) = try decider.requireSendable()
    let now = core.clock.now()
    try pauses.endUnasked { !$0.isAuth }
    try core.queue.endOwnWaits(of: session.owner)
    pulls.requirePull()
    check.askSilently(check.isConfirmed ? .keepingAnswer : .discardingAnswer, now)
    if !reachability.isOnline { return ["started": false, "reason": "offline"] }
    if try hold.tokenPause(now) != nil {
      return ["started": false, "reason": .string(MessageCode.token.rawValue)]
    }
    if let pause = try hold.ownPause(now) {
      return ["started": false, "reason": .string(pause.code.rawValue)]
    }
    return ["started": true, "reason": .null]
  }

  private static func json(_ contacts: DatasetTable.Entry?) -> JSON {
    [
      "as_of_ms": JSON(contacts?.asOfMS), "reconciled_ms": JSON(contacts?.reconciledMS),
      "skipped": .int(contacts?.skipped ?? 0), "problem": JSON(contacts?.problem),
    ]
  }

  func status(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let (session, keys) = (try decider.requireSession(), try core.keys())
    let now = core.clock.now()
    let pause = try hold.longestPause(now)
    var contacts: DatasetTable.Entry?
    var summary: DatasetTable.Entry?
    let backend = core.configuration.backend
    if !backend.hasOrganisations || session.choice != nil {
      let org = CacheNames.org(session.choice, session, keys)
      (contacts, summary) = try cache.use { (tables) throws(Failure) in
        (try tables.datasets.read(.contacts, of: org), try tables.datasets.read(.summary, of: org))
      }
    }
    return [
      "running": .bool(inFlight.contains(.upload) || inFlight.contains(.pull)),
      "counts": try core.queue.counts(of: session.owner).json,
      "last_completed_ms": JSON(try core.meta.int(.lastSyncRun)),
      "not_before_ms": JSON(pause?.untilMS), "pause": JSON(pause?.code.rawValue),
      "contacts": backend.has(.contacts) ? SyncControl.json(contacts) : .null,
      "summary": backend.has(.summary) ? ["as_of_ms": JSON(summary?.asOfMS)] : .null,
      "problems": problems.json,
    ]
  }
}
