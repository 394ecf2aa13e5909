import Base
import Policy
import Store
import Supabase
import Vault

/// Decides about items that something on the way to the service refused: a firewall, for what is in
/// them, or a captive portal or a gateway, which refuses everything.
///
/// After such a refusal the service is asked whether it has the items. Its answer tells more than
/// that: the way is open, so what was refused are these items. Several are bisected. A single one
/// waits with pauses of its own, is sent alone, and is parked at last (`BlockedItemPolicy`). Others
/// do not wait for it. Without the answer nothing is any item's fault, and uploads back off.
///
/// When new items are refused one after the other, perhaps every upload is: uploads back off, too,
/// until the service judges one.
final class BlockedItems {
  /// A later answer does not tell what was refused when the item was.
  private static var maxAgeMS: Int64 { 60_000 }

  private let core: Core
  private let uploads: UploadState
  private let isolation: BatchIsolation
  private let pauses: ServicePauses
  private let syncRuns: SyncRunReporter

  init(
    _ core: Core, _ uploads: UploadState, isolation: BatchIsolation, pauses: ServicePauses,
    syncRuns: SyncRunReporter
  ) {
    self.core = core
    self.uploads = uploads
    self.isolation = isolation
    self.pauses = pauses
    self.syncRuns = syncRuns
  }

  /// The service answered when it was asked for these items, and has not named them. Returns false
  /// for a single item that was tried often enough: the caller parks it.
  func settle(
    _ batch: UploadBatch, _ block: UploadBatch.Block, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) -> Bool {
    guard now.monotonicMS - block.sinceMS <= BlockedItems.maxAgeMS else {
      try core.database.transaction { () throws(Failure) in try isolation.retry(batch) }
      return true
    }
    guard block.isOfOne, let item = batch.items.first else {
      try isolation.bisect(batch)
      try slowDown(block, isNew: true, response, now)
      return true
    }
    return try core.database.transaction { () throws(Failure) in
      guard try postpone(item, of: batch, mayPass: block.mayPass, now) else { return false }
      try slowDown(block, isNew: item.blocks == 0, response, now)
      try syncRuns.endIfDone(batch.owner, now)
      return true
    }
  }

  /// A single item waits with pauses of its own. Returns false if it was tried often enough. `mayPass`:
  /// an outage gives the same answer.
  func postpone(
    _ item: UploadBatch.Item, of batch: UploadBatch, mayPass: Bool, _ now: Instant
  ) throws(Failure) -> Bool {
    // A try that the user asked for before the pause has ended.
    let time = try core.steadyToStore(now)
    let leftMS = item.notBefore - time
    let isEarly = item.blocks > 0 && leftMS > 0 && leftMS <= BlockedItemPolicy.maxPauseMS
    var (count, until) = (item.blocks, item.notBefore)
    if !isEarly {
      let failure = uploads.noteFailing(item, of: batch)
      count = BlockedItemPolicy.count(
        after: count, tries: failure.tries,
        othersGotThrough: mayPass
          ? failure.othersGotThroughSinceLast : failure.othersGotThrough,
        mayPass: mayPass)
      until =
        time
        + BlockedItemPolicy.pauseMS(
          count: count, tries: failure.tries, mayPass: mayPass, random: Random.word())
    }
    if count >= BlockedItemPolicy.limit {
      uploads.forgetFailing(item.sequence)
      try core.queue.setBlocks(item.sequence, BlockedItemPolicy.limit)
      return false
    }
    try core.queue.transition(
      item.sequence, .waiting(.blocked(until: until), charge: .attempt))
    try core.queue.setBlocks(item.sequence, count)
    try isolation.moveToEnd(item)
    return true
  }

  private func slowDown(
    _ block: UploadBatch.Block, isNew: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if block.isCounted { return }
    block.isCounted = true
    if isNew { uploads.noteBlocked() }
    if uploads.blockedInARow >= BlockedItemPolicy.maxInARow {
      try pauses.backOff(.upload, response, now)
    }
  }
}
