import Base
import Policy
import Supabase
import Vault

/// Reads single contacts with their network-only columns, for `contact_get` with `live`.
extension ContactSearch {
  func send(_ request: LiveRequest, _ session: OpenSession, _ now: Instant) throws(Failure) {
    let backend = core.configuration.backend
    try inFlight.send(
      RestRequests.contactLive(
        backend, id: request.contact, columns: backend.contactColumns + backend.needsNetwork,
        bearer: session.accessToken),
      .live(request), generation: session.generation, now)
    live.markSent(request)
  }

  /// Hand the contact to the host in an answer, or say why there is none.
  func finish(
    _ request: LiveRequest, isCurrent: Bool, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard live.isOpen(request) else { return }
    // A refresh or another process changed the session meanwhile: ask with what is stored now.
    guard isCurrent else { return live.resend(request) }
    guard let session = sessions.session, core.configuration.mayCache(request.org, session) else {
      return live.end(.contactWithdrawn) { $0.number == request.number }
    }
    let outcome = RestClassification.rest(response.facts)
    var contact: JSON = .null
    var message = core.message(.contactUnreachable)
    if outcome == .answered, let rows = response.rows {
      try pauses.succeed(.live)
      let row = rows.first
      if let row, row.uuid("id") == request.contact,
        request.org == nil || row.uuid("org_id") == request.org
      {
        contact = row
        message = .null
      } else if row?.isNull != true {
        message = core.message(.contactGone)
        pulls.requirePull()
      }
    } else if outcome == .needsToken {
      try refresh.refuseToken(.live, response, now)
      return live.resend(request)
    }
    try emit(request, contact, message)
  }

  /// Answer the requests that ended without a contact, and those whose time is up.
  func answerEnded(_ now: Instant) throws(Failure) {
    while let request = live.firstEnded(now) {
      let code = request.ending ?? (reachability.isOnline ? .contactUnreachable : .offline)
      try emit(request, .null, core.message(code))
    }
  }

  private func emit(
    _ request: LiveRequest, _ contact: JSON, _ message: JSON
  ) throws(Failure) {
    try news.answer(
      "contact_get",
      [
        "request": .int(request.number), "id": .uuid(request.contact), "contact": contact,
        "message": message,
      ])
    live.remove(request)
  }
}
