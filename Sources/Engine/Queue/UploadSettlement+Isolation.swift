import Base
import Policy
import Store
import Supabase
import Vault

/// How items that hold up others are found, and then wait alone (`UploadPolicy` says when).
///
/// - `search`: one of the items is at fault. They become a retry group that is searched: of such a group half is sent
///   each time (`QueueTable.take`), and the half that is refused is the group from then on; `spare` frees the rest.
/// - `halve`: something fails that blames no item. Both halves are sent again, each as a group of its own.
/// - `retry`: the service or the kind is what fails. From the third attempt on one item may be the cause all the same,
///   so the batch is halved, and a single item goes behind the others.
///
/// The numbers of retry groups grow, so they also tell what was stored later than an item's refusal.
extension UploadSettlement {
  func newestGroup() throws(Failure) -> RetryGroup {
    RetryGroup(try core.meta.int(.retryGroup) ?? 0)
  }

  /// A new retry group, with an even number. The odd one before it is free, too (`RetryGroup.searched`).
  func nextGroup() throws(Failure) -> RetryGroup {
    RetryGroup(try core.meta.next(.retryGroup, above: try newestGroup().number | 1))
  }

  /// One of these items is at fault: they are, or stay, a retry group that is searched. Of the rest of that group
  /// nothing is known any more: it joins all others of which nothing is known.
  func search(_ batch: UploadBatch, charged isCharged: Bool) throws(Failure) {
    guard let first = batch.items.first else { return }
    var group = first.retryGroup
    if group.isSearched {
      try spareRest(of: batch)
    } else {
      group = try nextGroup().searched
      uploads.size.refuse()
    }
    for item in batch.items {
      try core.queue.transition(
        item.sequence, .pending, charged: isCharged, retryGroup: group)
    }
  }

  func spareRest(of batch: UploadBatch) throws(Failure) {
    guard let group = batch.items.first?.retryGroup, group.isSearched else { return }
    let last = try newestGroup()
    try core.queue.spare(group, to: last > group ? last : nextGroup(), of: batch.owner)
  }

  func halve(
    _ batch: UploadBatch, charged isCharged: Bool, isRefused: Bool = false
  ) throws(Failure) {
    let middle = batch.items.count / 2
    var first: RetryGroup?
    for half in [batch.items[..<middle], batch.items[middle...]] where !half.isEmpty {
      let group = try nextGroup()
      for item in half {
        try core.queue.transition(
          item.sequence, .pending, charged: isCharged,
          history: isRefused && item.history.isClean ? .refused(since: first ?? group) : nil,
          retryGroup: group)
      }
      first = first ?? group
    }
  }

  /// Send the batch again later, and count the attempt. After several attempts one of the items may be
  /// the cause, so others go first.
  func retry(_ batch: UploadBatch) throws(Failure) {
    let isSuspect = UploadSituation.Attempts(batch.attempts) != .few
    if isSuspect, batch.items.count > 1 { return try halve(batch, charged: true) }
    try release(batch, charged: true)
    if isSuspect { try moveToEnd(batch) }
  }

  /// Move the items to the last group; start a new group only if they are already there. Otherwise an outage
  /// would give every item its own group.
  func moveToEnd(_ batch: UploadBatch) throws(Failure) {
    for item in batch.items {
      var group = try newestGroup()
      let own = try core.queue.find(item.tag)?.retryGroup ?? .noGroup
      if group.isSearched || own >= group { group = try nextGroup() }
      try core.queue.assign(item.sequence, retryGroup: group)
    }
  }

  /// The item fails alone: it waits for itself, and is sent alone. Its retry group tells what is stored
  /// later than its first refusal, or than its last failure. `refusal`: why the server refused it, if it did.
  func waitAlone(
    _ item: UploadBatch.Item, _ failure: UploadFailure, _ s: UploadSituation,
    _ refusal: ParkReason?, _ now: Instant
  ) throws(Failure) {
    var rejection: [UInt8]?
    if let refusal, let row = try core.queue.find(item.tag) {
      rejection = try refusal.sealed(for: row, try core.keys().queues.derived(for: row.owner))
    }
    var (count, pause) = (item.history.failures, item.pause)
    if try !isEarly(item, now) {
      count = ItemPause.count(
        after: count, failure, othersSince: s.othersSince, othersQueued: s.othersQueued)
      pause = try core.pause(
        ItemPause.pauseMS(count, failure, othersSince: s.othersSince, random: Random.word()), now)
    }
    let keepsGroup = failure == .firewall && item.history.isAlone
    try core.queue.transition(
      item.sequence,
      .waiting(failure == .service ? .time(pause) : .blocked(pause)), charged: true,
      history: .alone(failures: count), retryGroup: keepsGroup ? nil : try nextGroup(),
      rejection: rejection)
  }
}
