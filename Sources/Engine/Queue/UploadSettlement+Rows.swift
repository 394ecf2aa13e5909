import Base
import Policy
import Store
import Supabase
import Vault

/// A function's response has a result per row, so an item at fault need not be searched.
extension UploadSettlement {
  func finish(
    _ batch: UploadBatch, _ rows: [RowResult], _ received: Received
  ) throws(Failure) {
    if batch.isCorrection { return try finishCorrections(batch, rows, received) }
    func ids(_ isIncluded: (RowResult) -> Bool) -> SortedUUIDSet {
      SortedUUIDSet(rows.filter(isIncluded).map { $0.id })
    }
    let now = received.now
    let stored = ids { $0.status.isStored }
    let isTaken = batch.items.contains { stored.contains($0.id) }
    let judged = ids { self.isJudged($0, batch, isTaken: isTaken) }
    // An answer about none of the rows, or one that decides about none, does not say that the function works.
    let isJudged = batch.items.contains { judged.contains($0.id) }
    if isJudged { try noteJudged(batch, now) }
    let unsettled = try eraseNamed(batch, ids { $0.status == .stored }, received)
    // The row of an item that was not sent before may be another one's, and so may that of an item which was
    // in trouble: a question has perhaps shown no row.
    func isUnsure(_ item: UploadBatch.Item) -> Bool {
      (item.isFirstAttempt || item.trouble != 0) && stored.contains(item.id)
    }
    try settle(unsettled.filter(isUnsure), .unnamed, nil, received)
    let rest = try eraseExisting(unsettled.filter { !isUnsure($0) }, stored: stored, received)
    if isTaken {
      // What is refused here is refused beside others that get through.
      let group = rest.isEmpty ? 0 : try nextGroup()
      for item in rest.items where judged.contains(item.id) { item.noteRefused(since: group) }
      try noteStored(batch, now)
    }
    for row in rows where judged.contains(row.id) && !stored.contains(row.id) {
      let one = rest.filter { $0.id == row.id }
      guard !one.isEmpty else { continue }
      let reason = ParkReason(row, one, isBesideOthers: isTaken)
      let answer = try row.outcome.map { (outcome) throws(Failure) in
        try self.answer(outcome, one, reason, received)
      }
      try settle(one, answer ?? .refusedGiven, reason, received)
    }
    let answered = ids { _ in true }
    let undecided = rest.filter { answered.contains($0.id) && !judged.contains($0.id) }
    if isJudged {
      for item in undecided.items { try settle(batch.with([item]), .undecided, nil, received) }
    } else {
      let passing = ids { $0.outcome == .transient }
      let isPassing = undecided.items.contains { passing.contains($0.id) }
      let refused = rows.first { $0.id == undecided.items.first?.id && $0.outcome?.ground != nil }
      try settle(
        undecided, isPassing ? .service : refused != nil ? .refusedOther : .schema,
        refused.map { ParkReason($0, batch) }, received)
    }
    // Rows without a result prove nothing. (A server that caps its answers gives too few.)
    try settle(rest.filter { !answered.contains($0.id) }, .schema, nil, received)
  }

  /// Whether the function has decided about the row: also if it refuses the row for something that no
  /// user gave, beside others that it has stored.
  private func isJudged(_ row: RowResult, _ batch: UploadBatch, isTaken: Bool) -> Bool {
    guard let outcome = row.outcome else { return true }
    guard outcome.ground != nil else { return false }
    return isTaken || outcome == .denied || outcome == .missingParent
      || ParkReason(row, batch).isForGiven
  }
}
