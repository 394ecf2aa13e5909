import Base
import Policy
import Store
import Supabase
import Vault

/// Uploads that fail for a reason which may be one of their items, or of no item.
extension UploadSettlement {
  /// The failure blames no item. While others get through, the item at fault is found and set aside;
  /// otherwise all wait that the failure may be of (`DoubtPolicy`).
  func doubt(
    _ batch: UploadBatch, _ fault: UploadFault, _ isCurrent: Bool, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    guard !batch.isEmpty else { return }
    let step = DoubtPolicy.step(
      fault, attempts: batch.attempts, isSetAside: batch.isSetAside,
      works: state.noteFailed(batch, fault, now), asksForPause: response.asksForPause(.upload))
    switch step {
    case .find where batch.items.count > 1: try isolation.bisect(batch)
    case .find:
      try core.database.transaction { () throws(Failure) in
        try isolation.setAside(batch.items, response, now)
        try syncRuns.endIfDone(batch.owner, now)
      }
    case .ask where isCurrent:
      try askWhetherOpen(batch, mayPass: true, isCurrent, response, now)
    case .wait where fault == .batchKey: try suspend(batch, response, now)
    case .wait, .ask: try pause([batch], response, now)
    }
  }

  /// Something on the way may have refused these items: ask the service which of them it has. Its
  /// answer tells that the way is open.
  func askWhetherOpen(
    _ batch: UploadBatch, mayPass: Bool = false, _ isCurrent: Bool, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    let block = UploadBatch.Block(batch, mayPass: mayPass, response, now)
    try enqueueReadBack(batch.doubted(.blocked(response), block: block), isCurrent)
  }

  /// Not the items' fault: the service backs off, in the transaction that counts the attempt.
  func pause(
    _ batches: [UploadBatch], _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      for batch in batches { try isolation.retry(try stillLeased(batch)) }
      try pauses.backOff(.upload, response, now)
    }
    reachability.noteFailure()
  }

  /// The service works but stores no item of this batch key, for instance because the table is
  /// missing. The batch key waits, and then one item probes; nothing is parked, and others continue.
  /// Each probe may be another item, so the wait grows with their number, too.
  private func suspend(
    _ batch: UploadBatch, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let first = batch.items.first else { return }
    let delay = Backoff.delayMS(
      attempt: max(Int(clamping: batch.attempts + 1), state.noteWait(batch)), random: Random.word(),
      floorMS: response.floorMS(for: .upload))
    try core.database.transaction { () throws(Failure) in
      let until = try core.steadyToStore(now) + delay
      try isolation.retry(batch)
      try core.queue.suspend(like: first.sequence, of: batch.owner, response.wait(until: until))
    }
  }
}
