import Base
import Policy
import Store
import Supabase
import Vault

/// A function's response has a result per row, so an item at fault needs no bisecting.
extension UploadSettlement {
  func finishRows(
    _ batch: UploadBatch, _ rows: [RowResult], _ isCurrent: Bool, _ response: HTTPResponse,
    _ now: Instant
  ) throws(Failure) {
    func ids(_ isIncluded: (RowResult) -> Bool) -> SortedUUIDSet {
      SortedUUIDSet(rows.filter(isIncluded).map { $0.id })
    }
    let stored = ids { $0.status == .stored || $0.status == .duplicate }
    let judged = ids { $0.outcome?.isVerdictOnRows ?? true }
    let answered = ids { _ in true }
    // An answer about none of the rows, or one that decides about none, does not say that the function
    // works.
    let isJudged = batch.items.contains { judged.contains($0.id) }
    if isJudged { try noteJudged(batch, now) }
    let unsettled = try erase(batch, stored: ids { $0.status == .stored }, now)
    // The row of an item that was not sent before may be another one's.
    func isDoubtful(_ item: UploadBatch.Item) -> Bool {
      item.isFirstAttempt && stored.contains(item.id)
    }
    try enqueueReadBack(unsettled.filter(isDoubtful), isCurrent)
    let rest = try eraseExisting(unsettled.filter { !isDoubtful($0) }, stored: stored, now)
    for row in rows where judged.contains(row.id) && !stored.contains(row.id) {
      let one = rest.filter { $0.id == row.id }
      guard !one.isEmpty else { continue }
      try refuse(row, one, isCurrent, now)
    }
    let undecided = rest.filter { answered.contains($0.id) && !judged.contains($0.id) }
    let passing = ids { $0.outcome == .transient }
    if isJudged {
      try delay(undecided, response, now)
    } else {
      let isPassing = undecided.items.contains { passing.contains($0.id) }
      try doubt(undecided, isPassing ? .service : .batchKey, isCurrent, response, now)
    }
    // Rows without a result prove nothing. (A server that caps its answers gives too few.)
    try doubt(rest.filter { !answered.contains($0.id) }, .batchKey, isCurrent, response, now)
  }

  /// Settle a row that a function refused. The first denied row makes the membership unconfirmed,
  /// so later denied rows are held.
  private func refuse(
    _ row: RowResult, _ item: UploadBatch, _ isCurrent: Bool, _ now: Instant
  ) throws(Failure) {
    let rejection = Rejection(row)
    switch row.outcome {
    case .missingParent: try awaitParent(item, rejection, now)
    case .denied where !isCurrent: try isolation.release(item)
    case .denied: try deny(item, rejection, now)
    default: try parking.park(item, rejection, now)
    }
  }

  /// The function decided about other rows of the request, and not about these: each waits for itself.
  /// Those that failed several times are at fault.
  private func delay(
    _ batch: UploadBatch, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    func isSuspect(_ item: UploadBatch.Item) -> Bool { item.attempts >= DoubtPolicy.suspectAfter }
    try core.database.transaction { () throws(Failure) in
      for item in batch.items where !isSuspect(item) { try isolation.delay(item, response, now) }
      let suspects = batch.items.filter(isSuspect)
      try isolation.setAside(suspects, response, now)
      if !suspects.isEmpty { try syncRuns.endIfDone(batch.owner, now) }
    }
  }
}

extension RowResult {
  /// What the code of a refused row means; nil: the row was not refused by a code.
  fileprivate var outcome: RestOutcome? {
    status == .rejected && sqlstate != nil ? RestOutcome(sqlstate: sqlstate) : nil
  }
}
