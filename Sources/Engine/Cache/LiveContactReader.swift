import Base
import Policy
import Supabase
import Vault

/// Reads single contacts with their withheld columns, for `contact_get` with `live`.
final class LiveContactReader {
  private let core: Core
  private let sessions: SessionStore
  private let live: LiveContacts
  private let refresh: Refresh
  private let pauses: ServicePauses
  private let pulls: PullState
  private let events: EventQueue
  private let inFlight: InFlight

  init(
    _ core: Core, _ sessions: SessionStore, live: LiveContacts, refresh: Refresh,
    pauses: ServicePauses, pulls: PullState, events: EventQueue, inFlight: InFlight
  ) {
    self.core = core
    self.sessions = sessions
    self.live = live
    self.refresh = refresh
    self.pauses = pauses
    self.pulls = pulls
    self.events = events
    self.inFlight = inFlight
  }

  func send(_ request: LiveRequest, _ session: OpenSession, _ now: Instant) throws(Failure) {
    let backend = core.configuration.backend
    try inFlight.send(
      RestRequests.contactLive(
        backend, id: request.contact, columns: backend.contactColumns + backend.withheld,
        bearer: session.accessToken),
      .live(request), generation: session.generation, now)
    live.markSent(request)
  }

  /// Hand the contact to the host in an event, or say why there is none.
  func finish(
    _ request: LiveRequest, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    live.remove(request)
    guard let session = sessions.session, session.choice == request.org else { return }
    let outcome = RestClassification.rest(response.facts)
    var contact: JSON = .null
    var message = core.message(.serverUnreachable)
    if outcome == .answered, let body = response.body, body.kind == .array {
      try pauses.succeed(.rest)
      if let row = body.elements.first, row.uuid("id") == request.contact,
        row.uuid("org_id") == request.org
      {
        contact = row
        message = .null
      } else {
        message = core.message(.contactGone)
        pulls.requirePull()
      }
    } else if outcome == .needsToken {
      try refresh.refuseToken(response, now)
    }
    try events.emit([
      "type": "contact", "request": .int(request.number), "id": .uuid(request.contact),
      "contact": contact, "message": message,
    ])
  }
}
