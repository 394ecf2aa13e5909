import Base
import Policy
import Store
import Vault

/// Notes the progress of a run for the host, and its end, when none of the owner's items can be sent any
/// more.
struct SyncRunReporter: Rules {
  let parts: Parts

  /// Items are proved to be stored: count them, and keep their ids for the host.
  func countStored(_ ids: [UUID], of owner: [UInt8], _ now: Instant) throws(Failure) {
    let before = try core.syncRuns.find(of: owner)
    try core.syncRuns.count(
      of: owner, sent: Int64(ids.count), parked: 0, now: try core.steadyToStore(now))
    if let before, before.sent >= Int64(News.mostIDs) { return }
    let key = try core.keys().queues.derived(for: owner)
    var known = try storedIDs(before, of: owner, key)
    for id in ids where known.count < News.mostIDs { known.append(.uuid(id)) }
    try core.syncRuns.keep(
      ids: try key.seal(["ids": .array(known)] as JSON, SyncRunReporter.context(owner)), of: owner)
  }

  private func storedIDs(
    _ run: SyncRun?, of owner: [UInt8], _ key: Key
  ) throws(Failure) -> [JSON] {
    guard let sealed = run?.ids,
      let opened = try key.openJSON(sealed, SyncRunReporter.context(owner))
    else { return [] }
    return opened["ids"]?.elements ?? []
  }

  private static func context(_ owner: [UInt8]) -> SealContext {
    SealContext(table: "sync_run", owner: owner, column: "ids")
  }

  /// The totals of a run, and the ids of the items that were stored.
  private func report(
    _ run: SyncRun, of owner: [UInt8], _ now: Instant
  ) throws(Failure) -> RunReport {
    RunReport(
      owner: owner, sent: run.sent, parked: run.parked,
      ids: try storedIDs(run, of: owner, try core.keys().queues.derived(for: owner)),
      durationMS: max(0, try core.steady(now) - run.started))
  }

  /// End the run if no item of the owner's is pending, sending or in a pause. An item that was refused
  /// on the way waits for itself and keeps no run open. A run that neither sent nor parked anything
  /// ends in silence.
  func endIfDone(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard let run = try core.syncRuns.find(of: owner),
      try !core.queue.hasPending(of: owner), try !core.queue.hasSending(of: owner),
      try !core.queue.hasPaused(of: owner)
    else { return }
    try core.syncRuns.end(of: owner)
    if run.sent + run.parked == 0 { return }
    let waiting = try core.queue.counts(of: owner).waiting
    try core.meta.set(.lastSyncRun, .int(now.wallMS))
    var report = try report(run, of: owner, now)
    report.outcome = outcome(run, waiting)
    news.noteEnd(report)
  }

  private func outcome(_ run: SyncRun, _ waiting: Int64) -> MessageCode {
    if run.parked > 0 { return .syncCompletedParked }
    return waiting > 0 ? .syncCompletedWaiting : .syncCompleted
  }

  func emitProgress(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard news.wantsProgress(now), let run = try core.syncRuns.find(of: owner) else { return }
    news.noteProgress(try report(run, of: owner, now), now)
  }
}
