import Base
import Policy
import Store
import Supabase
import Vault

/// Finds the items that keep a batch from being stored.
///
/// The items of a refused batch become a retry group with an odd number: one of them is at fault. Such a
/// group is leased at once and searched (`BatchSearch`), until the item at fault is alone: that one is
/// parked. What the search leaves when its time is over becomes groups again: with odd numbers where an
/// item is at fault, and otherwise with an even one. Other items go first. The groups are numbers in the
/// rows, so the search continues after a restart. While items are being refused, batches are smaller,
/// because a bad item then costs fewer requests.
///
/// A batch that fails for a passing reason is sent again. After several such failures one of its
/// items may be the cause (for instance, a proxy drops the request): the batch is split as well,
/// and a single item moves behind all others. Once others get through, the item at fault is found
/// without a wait, and set aside: it is sent alone, and waits for itself (`DoubtPolicy`).
final class BatchIsolation {
  private let core: Core
  private let uploads: UploadState

  init(_ core: Core, _ uploads: UploadState) {
    self.core = core
    self.uploads = uploads
  }

  /// The next even number of a retry group. The odd one before it is free, too.
  func nextGroup() throws(Failure) -> Int64 {
    try core.meta.next(.retryGroup, above: (try core.meta.int(.retryGroup) ?? 0) | 1)
  }

  /// One of these items is at fault: they are a retry group that is searched.
  func accuse(_ items: [UploadBatch.Item]) throws(Failure) {
    guard !items.isEmpty else { return }
    try core.database.transaction { () throws(Failure) in
      try assign(items, try nextGroup() - 1)
    }
  }

  /// These items are pending in the retry group; nil: in the one where they were.
  func assign(_ items: [UploadBatch.Item], _ group: Int64?) throws(Failure) {
    for item in items { try core.queue.transition(item.sequence, .pending(retryGroup: group)) }
  }

  /// Split the batch into two retry groups. `charge`: what every item is charged with. Charge an
  /// attempt unless the answer proves that nothing was stored: a later edit or cancel must know. Returns the
  /// groups.
  @discardableResult
  func split(
    _ batch: UploadBatch, _ charge: Transition.Charge = .nothing
  ) throws(Failure) -> [Int64] {
    let middle = batch.items.count / 2
    return try core.database.transaction { () throws(Failure) in
      var groups: [Int64] = []
      for half in [batch.items[..<middle], batch.items[middle...]] {
        let group = try nextGroup()
        groups.append(group)
        for item in half {
          try core.queue.transition(
            item.sequence, .pending(charge: charge, retryGroup: group))
        }
      }
      return groups
    }
  }

  /// An item of the batch is at fault: split, and send smaller batches from now on.
  @discardableResult
  func bisect(
    _ batch: UploadBatch, _ charge: Transition.Charge = .nothing
  ) throws(Failure) -> [Int64] {
    uploads.shrinkBatches()
    return try split(batch, charge)
  }

  /// Send the batch again, and count the attempt.
  func retry(_ batch: UploadBatch) throws(Failure) {
    let isSuspect = batch.attempts >= DoubtPolicy.suspectAfter
    if isSuspect, batch.items.count > 1 {
      try split(batch, .attempt)
      return
    }
    for item in batch.items {
      try core.queue.transition(item.sequence, .pending(charge: .attempt))
    }
    if isSuspect, let only = batch.items.first { try moveToEnd(only) }
  }

  /// The item fails alone: it waits for itself, and is sent alone.
  func setAside(
    _ item: UploadBatch.Item, _ failure: UploadState.FailureAlone, mayGrow: Bool,
    _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    try wait(
      item,
      Backoff.aloneDelayMS(
        tries: mayGrow ? failure.tries : min(failure.tries, Backoff.aloneAfter),
        isProved: failure.othersGotThroughSinceLast, random: Random.word(),
        floorMS: response.floorMS(for: .upload)), response, now)
    try core.queue.setBlocks(item.sequence, max(1, item.blocks))
  }

  /// Let an item wait by its own attempts.
  func delay(
    _ item: UploadBatch.Item, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    try wait(
      item,
      Backoff.delayMS(
        attempt: Int(clamping: item.attempts + 1), random: Random.word(),
        floorMS: response.floorMS(for: .upload)), response, now)
  }

  private func wait(
    _ item: UploadBatch.Item, _ delay: Int64, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let until = try core.steadyToStore(now) + delay
    try core.queue.transition(
      item.sequence, .waiting(response.wait(until: until), charge: .attempt))
  }

  /// Move it to the last group; start a new group only if it is already there. Otherwise an outage
  /// would give every item its own group.
  func moveToEnd(_ item: UploadBatch.Item) throws(Failure) {
    var group = try core.meta.int(.retryGroup) ?? 0
    let own = try core.queue.find(item.tag)?.retryGroup ?? 0
    if group & 1 == 1 || own >= group {
      group = try nextGroup()
    }
    try core.queue.assign(item.sequence, retryGroup: group)
  }

  /// Send the items again. Without a charge the request says nothing about them: it cannot have stored
  /// them.
  func release(
    _ batch: UploadBatch, _ charge: Transition.Charge = .nothing
  ) throws(Failure) {
    try release(batch.items.map { $0.sequence }, charge)
  }

  func release(
    _ sequences: [Int64], _ charge: Transition.Charge = .nothing
  ) throws(Failure) {
    try core.database.transaction { () throws(Failure) in
      for sequence in sequences { try core.queue.transition(sequence, .pending(charge: charge)) }
    }
  }
}
