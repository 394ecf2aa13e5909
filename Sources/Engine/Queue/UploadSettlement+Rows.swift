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
    let stored = ids { $0.status.isStored }
    // A row that is refused for what its user gave, or beside others that are stored.
    let isTaken = batch.items.contains { stored.contains($0.id) }
    func isVerdict(_ row: RowResult) -> Bool {
      guard let outcome = row.outcome else { return true }
      guard outcome.ground != nil else { return false }
      return isTaken || outcome == .denied || outcome == .missingParent
        || Rejection(row, batch).isForGiven
    }
    let judged = ids(isVerdict)
    let answered = ids { _ in true }
    // An answer about none of the rows, or one that decides about none, does not say that the function
    // works.
    let isJudged = batch.items.contains { judged.contains($0.id) }
    if isJudged { try noteJudged(batch, now) }
    let unsettled = try erase(batch, stored: ids { $0.status == .stored }, now)
    // The row of an item that was not sent before may be another one's, and so may that of an item which was
    // denied: a read-back has perhaps shown no row.
    func isDoubtful(_ item: UploadBatch.Item) -> Bool {
      (item.isFirstAttempt || item.denials > 0) && stored.contains(item.id)
    }
    try enqueueReadBack(unsettled.filter(isDoubtful), isCurrent)
    let rest = try eraseExisting(unsettled.filter { !isDoubtful($0) }, stored: stored, now)
    for row in rows where judged.contains(row.id) && !stored.contains(row.id) {
      let one = rest.filter { $0.id == row.id }
      guard !one.isEmpty else { continue }
      try refuse(row, one, isTaken: isTaken, isCurrent, response, now)
    }
    if isTaken { try noteStored(batch, now) }
    let undecided = rest.filter { answered.contains($0.id) && !judged.contains($0.id) }
    let passing = ids { $0.outcome == .transient }
    if isJudged {
      try delay(undecided, response, now)
    } else {
      let isPassing = undecided.items.contains { passing.contains($0.id) }
      let refused = rows.first { $0.id == undecided.items.first?.id && $0.outcome?.ground != nil }
      try doubt(
        undecided, isPassing ? .service : .batchKey, refused.map { Rejection($0, batch) },
        isCurrent,
        response, now)
    }
    // Rows without a result prove nothing. (A server that caps its answers gives too few.)
    try doubt(rest.filter { !answered.contains($0.id) }, .batchKey, nil, isCurrent, response, now)
  }

  /// Settle a row that a function refused. The first denied row makes the membership unconfirmed,
  /// so later denied rows are held. `isTaken`: the function has stored others meanwhile.
  private func refuse(
    _ row: RowResult, _ item: UploadBatch, isTaken: Bool, _ isCurrent: Bool,
    _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let rejection = Rejection(row, item, isBesideOthers: isTaken)
    switch row.outcome {
    case .missingParent: try awaitParent(item, rejection, response, now)
    case .denied where !isCurrent: try isolation.release(item)
    case .denied: try deny(item, rejection, response, now)
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
    }
    let suspects = batch.filter(isSuspect)
    if !suspects.isEmpty { try waitAlone(suspects, isRefused: false, response, now) }
  }
}
