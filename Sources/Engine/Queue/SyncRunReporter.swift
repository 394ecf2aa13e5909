import Base
import Policy
import Store
import Vault

/// Emits `sync_progress` during a run, and one `sync_completed` when none of the owner's items can
/// be sent any more.
final class SyncRunReporter {
  private let core: Core
  private let events: EventQueue

  init(_ core: Core, _ events: EventQueue) {
    self.core = core
    self.events = events
  }

  /// The most ids in an event.
  private static var maxIDs: Int { 500 }

  /// Items are proved to be stored: count them, and keep their ids for the events.
  func countStored(_ ids: [UUID], of owner: [UInt8], _ now: Instant) throws(Failure) {
    let before = try core.syncRuns.find(of: owner)
    try core.syncRuns.count(
      of: owner, sent: Int64(ids.count), parked: 0, now: try core.steadyToStore(now))
    if let before, before.sent >= Int64(SyncRunReporter.maxIDs) { return }
    let key = try core.keys().queues.derived(for: owner)
    var known = try storedIDs(before, of: owner, key)
    for id in ids where known.count < SyncRunReporter.maxIDs { known.append(.uuid(id)) }
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

  /// An event of the run with its totals and the ids of the items that were stored.
  private func event(
    _ type: StaticCString, _ run: SyncRun, of owner: [UInt8]
  ) throws(Failure) -> JSON {
    let ids = try storedIDs(run, of: owner, try core.keys().queues.derived(for: owner))
    return [
      "type": .string(type.string), "sent": .int(run.sent), "parked": .int(run.parked),
      "ids": .array(ids),
      "ids_truncated": .bool(Int64(ids.count) < run.sent),
    ]
  }

  /// End the run if no item of the owner's is pending, sending or suspended. An item that was refused
  /// on the way waits for itself and keeps no run open. A run that neither sent nor parked anything
  /// ends in silence.
  func endIfDone(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard let run = try core.syncRuns.find(of: owner),
      try !core.queue.hasPending(of: owner), try !core.queue.hasSending(of: owner),
      try !core.queue.hasSuspended(of: owner)
    else { return }
    try core.syncRuns.end(of: owner)
    if run.sent + run.parked == 0 { return }
    let waiting = try core.queue.counts(of: owner).waiting
    try core.meta.set(.lastSyncRun, .int(now.wallMS))
    let event = try event("sync_completed", run, of: owner)
    event.set("waiting", .int(waiting))
    event.set("duration_ms", .int(max(0, try core.steady(now) - run.started)))
    event.set("message", core.message(message(run, waiting)))
    try events.emitDurable(event, owner: owner)
  }

  private func message(_ run: SyncRun, _ waiting: Int64) -> MessageCode {
    if run.parked > 0 { return .syncCompletedParked }
    return waiting > 0 ? .syncCompletedWaiting : .syncCompleted
  }

  func emitProgress(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    try events.emitProgress(now) { () throws(Failure) in
      guard let run = try core.syncRuns.find(of: owner) else { return nil }
      let event = try event("sync_progress", run, of: owner)
      event.set("counts", try core.queue.counts(of: owner).json)
      return event
    }
  }
}
