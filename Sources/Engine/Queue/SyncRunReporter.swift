import Base
import Policy
import Store

/// Emits `sync_progress` during a run, and one `sync_completed` when none of the owner's items can
/// be sent any more.
final class SyncRunReporter {
  private let core: Core
  private let events: EventQueue

  init(_ core: Core, _ events: EventQueue) {
    self.core = core
    self.events = events
  }

  /// Complete the run if none of the owner's items is pending, sending or waiting for a time.
  func endIfDone(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    guard let run = try core.syncRuns.find(of: owner), run.sent + run.parked > 0,
      try !core.queue.hasPending(of: owner), try !core.queue.hasSending(of: owner),
      try core.queue.nextMS(of: owner) == nil
    else { return }
    let waiting = try core.queue.counts(of: owner).waiting
    try core.syncRuns.end(of: owner)
    try core.meta.set(.lastSyncRun, .int(now.wallMS))
    try events.emitDurable(
      [
        "type": "sync_completed", "sent": .int(run.sent), "parked": .int(run.parked),
        "waiting": .int(waiting), "duration_ms": .int(max(0, now.wallMS - run.startedMS)),
        "message": core.message(.syncCompleted),
      ], owner: owner)
  }

  func emitProgress(_ owner: [UInt8], _ now: Instant) throws(Failure) {
    try events.emitProgress(now) { () throws(Failure) in
      guard let run = try core.syncRuns.find(of: owner) else { return nil }
      return [
        "type": "sync_progress", "sent": .int(run.sent), "parked": .int(run.parked),
        "counts": try core.queue.counts(of: owner).json,
      ]
    }
  }
}
