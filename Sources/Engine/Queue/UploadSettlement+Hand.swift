import Base
import Policy
import Store
import Supabase
import Vault

/// The responses to the requests that are made from one lease (`UploadHand`).
extension UploadSettlement {
  /// Returns false if the response says something else than that all items are stored or one of them is
  /// at fault: then what is in hand was put back, and the response is settled like any other.
  func finishInHand(
    _ sent: UploadBatch, _ outcome: RestOutcome, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) -> Bool {
    guard let hand = state.hand, let part = hand.sent?.part, hand.sent?.batch === sent else {
      return false
    }
    // Storage may fail, and the host completes the request again: `hand` changes last.
    var search = hand.search
    var faults = hand.faults
    let isSearching = search.isSearching
    if outcome == .answered, isStored(sent, response) {
      search.store(part)
    } else if outcome.isSearched, case let rejection = Rejection(outcome, sent, response),
      rejection.isForGiven
    {
      search.refuse(part)
      if sent.items.count == 1 { faults.append((sent, rejection)) }
    } else {
      try putBack(hand, search, faults, except: sent, now)
      return false
    }
    if outcome == .answered { try noteStored(sent, now) } else { try noteJudged(sent, now) }
    if search.isDone || hand.isDue(now) {
      try putBack(hand, search, faults, except: nil, now)
    } else {
      (hand.search, hand.faults, hand.sent) = (search, faults, nil)
    }
    if !isSearching {
      if outcome == .answered { state.growBatches(part.count) } else { state.shrinkBatches() }
    }
    return true
  }

  private func isStored(_ sent: UploadBatch, _ response: HTTPResponse) -> Bool {
    guard sent.kind.upload == .table, let ids = UploadReply.storedIDs(response.rows) else {
      return false
    }
    let stored = SortedUUIDSet(ids)
    return sent.items.allSatisfy { stored.contains($0.id) }
  }

  /// Store in one commit what was found, and end the leases. `except`: what is in flight and not settled.
  func putBack(
    _ hand: UploadHand, _ search: BatchSearch,
    _ faults: [(batch: UploadBatch, rejection: Rejection)], except sent: UploadBatch?,
    _ now: Instant
  ) throws(Failure) {
    let leased = try core.queue.leased(by: core.holder.bytes)
    let inFlight = sent?.items ?? []
    func unsent(_ part: [Int]) -> [UploadBatch.Item] {
      hand.items(part, of: leased).filter { item in !inFlight.contains { $0 === item } }
    }
    try eraseProved(hand.all.with(hand.items(search.stored, of: leased)), now) {
      () throws(Failure) in
      for fault in faults {
        let batch = fault.batch.filter { leased.sortedContains($0.sequence) }
        try parking.park(batch, fault.rejection, now)
      }
      for part in search.guilty { try isolation.accuse(unsent(part)) }
      // An odd group would say that one of them is at fault.
      try isolation.assign(unsent(search.unknown), hand.group & 1 == 1 ? hand.group + 1 : nil)
    }
    state.hand = nil
  }
}
