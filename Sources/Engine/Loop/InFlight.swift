import Base
import Supabase

/// A request that was made and has no response yet.
final class InFlightRequest {
  /// What the response is for.
  enum Content {
    case refresh
    case validate
    indirect case membershipCheck(MembershipRead)
    case signIn(PendingSignIn)
    case revoke(job: Int64, Revocation.Step)
    case upload(UploadBatch)
    case readBack(UploadBatch)
    indirect case rows(RowPull)
    indirect case summary(org: UUID?, uploads: Int64)
    case live(LiveRequest)
  }

  let id: Int64
  let purpose: Purpose
  let content: Content
  /// The session's generation when the request was made.
  let generation: Int64
  /// When the request counts as timed out, by the monotonic clock.
  let deadlineMS: Int64
  /// The response, from when the host has passed it until it is worked off.
  fileprivate(set) var response: HTTPResponse?
  /// The request for the host, until it is given.
  fileprivate(set) var outgoing: JSON?

  init(
    id: Int64, purpose: Purpose, content: Content, generation: Int64, deadlineMS: Int64
  ) {
    self.id = id
    self.purpose = purpose
    self.content = content
    self.generation = generation
    self.deadlineMS = deadlineMS
  }
}

/// The requests that wait for a response, and those among them that were not given to the host yet.
final class InFlight {
  /// A response may arrive this long after the request's time-out.
  private static var graceMS: Int64 { 5000 }

  private(set) var requests: [InFlightRequest] = []
  private(set) var lastID: Int64
  /// The requests whose responses the current call has processed.
  private var finished: [InFlightRequest] = []

  /// Request ids start after `base`. Each handle has a random one, so that a late response to
  /// another handle's request is not taken for a response to one of this handle's.
  init(after base: Int64) { lastID = base }

  func contains(_ purpose: Purpose) -> Bool { requests.contains { $0.purpose == purpose } }

  /// Whether the exchange of this sign-in is in flight. That of a cancelled one holds up no other.
  func contains(_ pending: PendingSignIn) -> Bool {
    requests.contains {
      if case .signIn(let sent) = $0.content { return sent === pending }
      return false
    }
  }

  func find(_ id: Int64) -> InFlightRequest? { requests.first { $0.id == id } }

  /// The requests whose time is up. One that has its response is not late.
  func late(_ now: Instant) -> [InFlightRequest] {
    requests.filter { $0.deadlineMS <= now.monotonicMS && $0.response == nil }
  }

  /// Keep the response until it is worked off. The first one counts.
  func keep(_ response: HTTPResponse, for request: InFlightRequest) {
    if request.response == nil { request.response = response }
  }

  /// The requests whose responses are not worked off yet.
  var answered: [InFlightRequest] { requests.filter { $0.response != nil } }

  /// Put a request in flight; `next` gives it to the host.
  func send(
    _ request: Request, _ content: InFlightRequest.Content, generation: Int64, _ now: Instant
  ) throws(Failure) {
    lastID += 1
    let rendered = try request.rendered(id: lastID)
    try JSON.checkMemory()
    let made = InFlightRequest(
      id: lastID, purpose: request.purpose, content: content, generation: generation,
      deadlineMS: now.monotonicMS + request.timeoutMS + InFlight.graceMS)
    made.outgoing = rendered
    requests.append(made)
    Log.line(.debug, "request \(lastID): \(request.purpose.rawValue)")
  }

  /// The response was processed.
  func finish(_ id: Int64) {
    finished += requests.filter { $0.id == id }
    requests.removeAll { $0.id == id }
  }

  /// The call runs again: it has not processed any response yet.
  func restoreFinished() {
    requests += finished
    finished = []
  }

  /// A new call begins.
  func forgetFinished() { finished = [] }

  /// Remove the requests with this purpose: what their responses say is too old.
  func remove(_ purpose: Purpose) { requests.removeAll { $0.purpose == purpose } }

  /// Remove all requests; late responses to them are ignored.
  func removeAll() { requests = [] }

  /// Remove all but the sign-in.
  func keepSignIn() { requests.removeAll { $0.purpose != .signIn } }

  // MARK: Giving

  /// The request to give, whose time is not over.
  func next(_ now: Instant) -> InFlightRequest? {
    requests.first { $0.outgoing != nil && $0.deadlineMS > now.monotonicMS }
  }

  /// The host has it.
  func give(_ request: InFlightRequest) { request.outgoing = nil }

  /// Whether a request is made, and not given.
  var holdsMade: Bool { requests.contains { $0.outgoing != nil } }
}
