import Base
import Policy
import Store
import Supabase
import Vault

/// What a function has decided about the items of a batch.
struct RowDecisions {
  let rows: [RowResult]
  let stored: SortedUUIDSet
  /// Those that it has decided about: also if it refuses them for something that no user gave, beside others
  /// that it has stored.
  let judged: SortedUUIDSet
  /// It has stored items of the batch.
  let isTaken: Bool
  /// An answer about none of the rows, or one that decides about none, does not say that the function works.
  let isJudged: Bool

  init(_ rows: [RowResult], _ batch: UploadBatch) {
    let stored = rows.ids { $0.status.isStored }
    let isTaken = batch.items.contains { stored.contains($0.id) }
    let judged = rows.ids { RowDecisions.isJudged($0, batch, isTaken: isTaken) }
    (self.rows, self.stored, self.judged, self.isTaken) = (rows, stored, judged, isTaken)
    isJudged = batch.items.contains { judged.contains($0.id) }
  }

  private static func isJudged(_ row: RowResult, _ batch: UploadBatch, isTaken: Bool) -> Bool {
    guard let outcome = row.outcome else { return true }
    guard outcome.ground != nil else { return false }
    return isTaken || outcome == .denied || outcome == .missingParent
      || ParkReason(row, batch).isForGiven
  }
}

/// A function's response has a result per row, so an item at fault need not be searched.
extension UploadSettlement {
  func finish(
    _ batch: UploadBatch, _ rows: [RowResult], _ received: Received
  ) throws(Failure) {
    if received.isCurrent, rows.contains(where: { $0.status != .rejected }) {
      problems.noteUpload(of: batch, nil, received.now)
    }
    if batch.isCorrection { return try finishCorrections(batch, rows, received) }
    let decisions = RowDecisions(rows, batch)
    let stored = decisions.stored
    if decisions.isJudged { try noteJudged(batch, received.now) }
    let fresh = rows.ids { $0.status == .stored }
    let unsettled = try eraseNamed(batch, fresh, received)
    // The row of an item that was not sent before may be another one's, and so may that of an item which has
    // failed: a question has perhaps shown no row.
    func mustBeAsked(_ item: UploadBatch.Item) -> Bool {
      (item.isCompared || !item.history.isClean) && stored.contains(item.id)
    }
    try settle(unsettled.filter(mustBeAsked), .unnamed, nil, received)
    let rest = try eraseExisting(unsettled.filter { !mustBeAsked($0) }, stored: stored, received)
    try noteTaken(batch, rest, decisions, received.now)
    try settleRefused(rest, decisions, received)
  }

  /// If the function has stored items, what it refuses of the rest is refused beside others that get through.
  func noteTaken(
    _ batch: UploadBatch, _ rest: UploadBatch, _ decisions: RowDecisions, _ now: Instant
  ) throws(Failure) {
    guard decisions.isTaken else { return }
    let group = rest.isEmpty ? .noGroup : try nextGroup()
    for item in rest.items where decisions.judged.contains(item.id) {
      item.noteRefused(since: group)
    }
    try noteStored(batch, now)
  }

  /// Settle the items that the function has refused, or has not decided about.
  func settleRefused(
    _ rest: UploadBatch, _ decisions: RowDecisions, _ received: Received
  ) throws(Failure) {
    let judged = decisions.judged
    for row in decisions.rows where judged.contains(row.id) {
      let one = rest.filter { $0.id == row.id }
      guard !one.isEmpty else { continue }
      let reason = ParkReason(row, one, isBesideOthers: decisions.isTaken)
      let answer = try row.outcome.map { (outcome) throws(Failure) in
        try self.answer(outcome, one, reason, received)
      }
      try settle(one, answer ?? .refusedGiven, reason, received)
    }
    let answered = decisions.rows.ids { _ in true }
    let undecided = rest.filter { answered.contains($0.id) && !judged.contains($0.id) }
    if decisions.isJudged {
      for item in undecided.items { try settle(rest.with([item]), .undecided, nil, received) }
    } else {
      let passing = decisions.rows.ids { $0.outcome == .transient }
      let isPassing = undecided.items.contains { passing.contains($0.id) }
      let first = decisions.rows.first { $0.id == undecided.items.first?.id }
      let isRefused = first?.outcome?.ground != nil
      try settle(
        undecided, isPassing ? .service : isRefused ? .refusedOther : .schema,
        first.map { ParkReason($0, rest) }, received)
    }
    // Rows without a result prove nothing. (A server that caps its answers gives too few.)
    try settle(rest.filter { !answered.contains($0.id) }, .schema, nil, received)
  }
}
