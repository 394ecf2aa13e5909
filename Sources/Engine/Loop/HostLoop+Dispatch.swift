import Base
import Policy
import Store
import Supabase
import Vault

/// Routes jobs to the parts that send them, and responses to the parts that process them.
extension HostLoop {
  /// Put the job's request in flight. A part sends nothing if the job is no longer needed. The part
  /// must have changed state so that `next` does not return the job again.
  func send(_ job: Scheduler.Job, _ now: Instant) throws(Failure) {
    switch job {
    case .refresh(let session): try refresh.send(session, now)
    case .validate(let session): try refresh.sendValidation(session, now)
    case .membershipCheck(let session): try memberships.send(session, now)
    case .signIn(let pending): try signIn.send(pending, now)
    case .revoke(let job, let session):
      try revocations.send(job, owner: try sessions.row().owner, session, now)
    case .upload(let session): try uploader.send(session, now)
    case .readBack(let session, let batch): try uploader.sendReadBack(batch, session, now)
    case .rows(let session, let org): try rowPuller.send(session, org, now)
    case .summary(let session, let org): try summary.send(session, org, now)
    case .live(let session, let request): try search.send(request, session, now)
    }
  }

  /// Process a response. The request leaves the list only afterwards, so the host may complete it
  /// again if storage fails.
  func finish(
    _ request: InFlightRequest, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let row = try sessions.row()
    _ = try sessions.reload(row)
    Log.line(.debug, "response \(request.id): \(request.purpose.rawValue), \(response.outcome)")
    try route(request, row, response, now)
    inFlight.finish(request.id)
  }

  /// A response counts only for the session that its request was made for; uploads are settled in any
  /// case, each under its owner.
  private func route(
    _ request: InFlightRequest, _ row: SessionRow, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let isCurrent = row.generation == request.generation
    if isCurrent { problems.note(request, response, lastSent: inFlight.lastID, now) }
    switch request.content {
    case .refresh: try refresh.finish(request.generation, response, now)
    case .validate:
      if isCurrent { try refresh.finishValidation(request.generation, response, now) }
    case .membershipCheck(let read):
      if isCurrent { try memberships.finish(read, response, now) }
    case .signIn(let pending): try signIn.finish(pending, row, response, now)
    case .revoke(let job, let step): try revocations.finish(job, step, response, now)
    case .upload(let batch), .readBack(let batch):
      try settlement.finish(batch, isCurrent: isCurrent, response, now)
      try endProblem(of: batch)
    case .rows(let pull):
      guard isCurrent else { return }
      try tolerateStorage(request.purpose, response, now) { () throws(Failure) in
        try rowPuller.finish(pull, response, now)
      }
    case .summary(let org, let uploads):
      guard isCurrent else { return }
      try tolerateStorage(request.purpose, response, now) { () throws(Failure) in
        try summary.finish(org, uploads: uploads, response, now)
      }
    case .live(let live): try search.finish(live, isCurrent: isCurrent, response, now)
    }
  }

  /// Process a read. If the cache cannot be written, only reads pause; the data is read again later.
  private func tolerateStorage(
    _ purpose: Purpose, _ response: HTTPResponse, _ now: Instant,
    _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    do throws(Failure) { try body() } catch
      where error.code.retryable && !core.reads.mustRunAgain
    {
      Log.warning("what was read could not be stored", error)
      reachability.noteFailure()
      try pauses.backOff(purpose, response, now)
    }
  }

  /// A single item that is parked was refused for itself: that is no problem of its kind.
  private func endProblem(of batch: UploadBatch) throws(Failure) {
    guard problems.concern(kind: batch.kind.name), let item = batch.items.last,
      batch.items.count == 1, try core.queue.find(item.tag)?.state == .parked
    else { return }
    problems.end(kind: batch.kind.name)
  }
}
