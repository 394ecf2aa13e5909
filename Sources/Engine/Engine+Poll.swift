public import Base
import Policy
import Store
import Supabase
import Vault

/// Services that back off each for themselves.
enum Service: String {
  case auth, rest
  /// Reads that fail for reasons of their own: they must not hold uploads up.
  case pull
}

/// A service's back-off that began in this process.
struct Pause {
  let service: Service
  /// As it is stored: another process may have changed it since.
  let notBeforeMS: Int64
  /// By the monotonic clock.
  let endsMS: Int64
}

/// A request that the host was given and that has no answer yet.
final class Flight {
  enum Content {
    case refresh
    case validate
    case guardian
    case signIn(Exchange)
    indirect case revoke(job: Int64, refreshing: Bool)
    case upload(UploadBatch)
    case readBack(UploadBatch)
    indirect case contacts(ContactsPull)
    indirect case summary(org: UUID, uploads: Int64)
    case live(LiveRequest)
  }

  let id: Int64
  let purpose: Purpose
  let content: Content
  /// The session's generation when it was sent.
  let generation: Int64
  /// When it counts as timed out, by the monotonic clock.
  let deadlineMS: Int64

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

/// When to come back, as it was found.
struct Wakes {
  /// By the monotonic clock; nil: nothing is due by time alone.
  let dueMS: Int64?
  /// What it was found from.
  var version: FileVersion
  var changes: UInt
  let hasKeys: Bool
  let foundMS: Int64
  /// How far the device's clock was ahead of the monotonic one.
  let offsetMS: Int64

  /// Something was due when it was found: it still is, until a poll looks.
  var isDue: Bool { dueMS == foundMS }
}

extension Engine {
  /// The device's clock and the monotonic one tick apart by less than this.
  private static var wakeToleranceMS: Int64 { 50 }
  /// What a request may take beyond its time-out before its answer is ignored.
  private static var graceMS: Int64 { 5000 }

  /// How long a key store that gave no key is left alone by a process whose user waits for it.
  private static var keyStorePauseMS: Int64 { 10_000 }

  public func poll(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["ack"])
    if let ack = try fields.integer(ifPresent: "ack", in: 0...Fields.safe.upperBound) {
      try notices.acknowledge(upTo: ack, for: try sessions.read().owner)
    }
    let now = clock.now()
    // What was thought to be due is looked for, not taken for granted.
    wakes = nil
    if try meta.int(.needsErase) == 1 { try eraseBiometricKey() }
    try expireFlights(now)
    try expireExchange(now)
    try noticeChange()
    while let job = try nextJob(now) {
      if let request = try launch(job, now) { outbox.append((lastFlight, request)) }
    }
    if events.holds("contact"), !canUse(try measure(.navigate).situation) {
      events.withdraw("contact")
    }
    // What a poll that fails did not hand out, the next one does.
    let before = events
    let waiting = outbox
    do throws(Failure) {
      let taken = try takeEvents()
      let wake = try wakeIn(now)
      promisedMS = wake.map { now.monotonicMS + $0 } ?? Int64.max / 2
      let requests = outbox.filter { sent in flights.contains { $0.id == sent.flight } }
      outbox = []
      handedOut = (before, waiting)
      return [
        "requests": .array(requests.map { $0.request }), "events": .array(taken),
        "wake_in_ms": JSON(wake),
      ]
    } catch {
      events = before
      throw error
    }
  }

  /// There was no memory for the reply of this call: what a poll handed out is still to be had.
  public func replyWasLost() {
    guard let handedOut else { return }
    (events, outbox) = handedOut
    self.handedOut = nil
  }

  /// Whether the host should poll now: there is something, or what falls due by time alone does so
  /// earlier than the last poll said.
  public func wantsPoll() throws(Failure) -> Bool {
    let now = clock.now()
    guard let wake = try wakeIn(now) else { return false }
    guard wake > 0, let promisedMS else { return wake == 0 }
    return wake < promisedMS - now.monotonicMS - Engine.wakeToleranceMS
  }

  /// Whether `poll` would have something.
  public func hasWork() throws(Failure) -> Bool {
    let now = clock.now()
    if try hasEvents() { return true }
    if flights.contains(where: { $0.deadlineMS <= now.monotonicMS }) { return true }
    if let exchange, exchange.deadlineMS <= now.monotonicMS { return true }
    if try nextJob(now) != nil { return true }
    return try owesDecision(now)
  }

  /// `wake_in_ms`, for a thread that waits.
  public func dueIn() throws(Failure) -> Int64? { try wantsPoll() ? 0 : try wakeIn(clock.now()) }

  // MARK: Jobs

  /// What is to be sent next.
  enum Job {
    case refresh(OpenSession)
    case validate(OpenSession)
    case guardian(OpenSession)
    case signIn(Exchange)
    indirect case revoke(RevocationTable.Job)
    case upload(OpenSession)
    indirect case readBack(OpenSession, UploadBatch)
    indirect case contacts(OpenSession, ContactsPull)
    indirect case summary(OpenSession, UUID)
    indirect case live(OpenSession, LiveRequest)
  }

  func isFlying(_ purpose: Purpose) -> Bool {
    flights.contains { $0.purpose == purpose }
  }

  /// The most urgent request that can be sent now, or nil. Reads only; what it names is made due
  /// or not by the files and the clock alone.
  func nextJob(_ now: Instant) throws(Failure) -> Job? {
    guard online, ring.keys != nil else { return nil }
    let mayAuth = try pauseLeft(.auth, now) <= 0
    if mayAuth, let exchange, !isFlying(.signIn) { return .signIn(exchange) }
    if mayAuth, !isFlying(.revoke), let job = try revocations.due(now: now.wallMS) {
      return .revoke(job)
    }
    let measured = try measure(.navigate)
    let (situation, row) = (measured.situation, measured.row)
    guard canUse(situation), let open else { return nil }
    if try needsRefresh(open, row, now) {
      guard mayAuth, !isFlying(.refresh), try mayRefresh(now) else { return nil }
      return .refresh(open)
    }
    if try isExpired(row, now) { return nil }
    if mayAuth, owesValidation, !isFlying(.validate) { return .validate(open) }
    guard try pauseLeft(.rest, now) <= 0 else { return nil }
    if let due = try heldDueMS(open, now), due <= 0 { askGuard(now, anew: false) }
    if guarding.wanted, !isFlying(.membershipCheck) { return .guardian(open) }
    if let live = liveRequests.first(where: { !$0.sent }) { return .live(open, live) }
    if try backoff(of: .rest).isProbing, flights.contains(where: { !$0.purpose.isAuth }) {
      return nil
    }
    if !isFlying(.upload) {
      if let batch = readBack.first {
        if batch.owner == open.owner { return .readBack(open, batch) }
        try abandonReadBack()
      }
      try reclaimLeases(at: now)
      try reclaimOwn()
      // Asked first: a statement that could write takes the file's write lock even if it does not.
      if let due = try queue.nextMS(of: open.owner), due <= now.wallMS {
        try queue.promote(of: open.owner, now: now.wallMS)
      }
      if try queue.hasPending(of: open.owner) { return .upload(open) }
    }
    // What is being sent changes what would be read: it is read once, after the last of it.
    guard !isFlying(.upload), try pauseLeft(.pull, now) <= 0 else { return nil }
    return try nextPull(open, now)
  }

  /// Turn a job into a request in flight; nil when it has become needless meanwhile.
  private func launch(_ job: Job, _ now: Instant) throws(Failure) -> JSON? {
    let backend = configuration.backend
    switch job {
    case .refresh(let open):
      guard try beginRefresh(open, now) else { return nil }
      return try fly(
        AuthRequests.refresh(backend, token: open.refreshToken), .refresh, open.generation, now)
    case .validate(let open):
      return try fly(
        AuthRequests.user(backend, bearer: open.accessToken), .validate, open.generation, now)
    case .guardian(let open):
      return try fly(
        RestRequests.memberships(backend, user: open.userID, bearer: open.accessToken), .guardian,
        open.generation, now)
    case .signIn(let exchange):
      return try fly(
        try exchange.request(backend), .signIn(exchange), try sessions.read().generation, now)
    case .revoke(let job): return try launchRevocation(job, now)
    case .upload(let open): return try launchUpload(open, now)
    case .readBack(let open, let batch):
      let request = try fly(
        RestRequests.readBack(
          backend, kind: batch.kind, ids: batch.items.map { $0.id }, bearer: open.accessToken),
        .readBack(batch), open.generation, now)
      readBack.removeFirst()
      return request
    case .contacts(let open, let pull):
      return try fly(
        pull.request(backend, open.accessToken), .contacts(pull), open.generation, now)
    case .summary(let open, let org):
      return try fly(
        RestRequests.summary(backend, org: org, bearer: open.accessToken),
        .summary(org: org, uploads: try meta.int(.uploads) ?? 0), open.generation, now)
    case .live(let open, let live):
      let request = try fly(
        RestRequests.contactLive(
          backend, id: live.contact, columns: backend.contactColumns + backend.withheld,
          bearer: open.accessToken),
        .live(live), open.generation, now)
      markSent(live)
      return request
    }
  }

  func fly(
    _ request: Request, _ content: Flight.Content, _ generation: Int64, _ now: Instant
  ) throws(Failure) -> JSON {
    lastFlight += 1
    let rendered = try request.rendered(id: lastFlight)
    try JSON.checkMemory()
    flights.append(
      Flight(
        id: lastFlight, purpose: request.purpose, content: content, generation: generation,
        deadlineMS: now.monotonicMS + request.timeoutMS + Engine.graceMS))
    Log.line(.debug, "request \(lastFlight): \(request.purpose.rawValue)")
    return rendered
  }

  // MARK: Answers

  public func complete(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "status", "headers", "body", "error"])
    let id = try fields.integer("id", in: 0...Fields.safe.upperBound)
    let now = clock.now()
    let reply = try HTTPResponse.read(fields, nowMS: try serverMS(now))
    try expireFlights(now)
    guard let index = flights.firstIndex(where: { $0.id == id }) else { return ["accepted": false] }
    if reply.status != 0 { try learnServerTime(reply.dateMS, now) }
    // Out of the list only when it is dealt with: after a failure of storage the answer may come
    // again.
    let flight = flights[index]
    try handle(flight, reply, now)
    flights.removeAll { $0.id == id }
    try noticeChange()
    return ["accepted": true]
  }

  private func expireFlights(_ now: Instant) throws(Failure) {
    let late = flights.filter { $0.deadlineMS <= now.monotonicMS }
    for flight in late {
      try handle(flight, HTTPResponse.timedOut, now)
      flights.removeAll { $0.id == flight.id }
    }
  }

  private func handle(_ flight: Flight, _ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    let row = try sessions.read()
    _ = try synchronize(row)
    let isCurrent = row.generation == flight.generation
    Log.line(.debug, "answer \(flight.id): \(flight.purpose.rawValue), status \(reply.status)")
    switch flight.content {
    case .refresh: try refreshed(flight, reply, now)
    case .validate: if isCurrent { try validated(reply, flight.generation, now) }
    case .guardian: if isCurrent { try guarded(reply, now) }
    case .signIn(let exchange): try signedIn(exchange, row, reply, now)
    case .revoke(let job, let refreshing): try revoked(job, refreshing, reply, now)
    case .upload(let batch): try uploaded(batch, isCurrent, reply, now)
    case .readBack(let batch): try confirmed(batch, isCurrent, reply, now)
    case .contacts(let pull):
      guard isCurrent else { return }
      try reading(reply, now) { () throws(Failure) in try pulled(pull, reply, now) }
    case .summary(let org, let uploads):
      guard isCurrent else { return }
      try reading(reply, now) { () throws(Failure) in try summarised(org, uploads, reply, now) }
    case .live(let live): if isCurrent { try fetched(live, reply, now) }
    }
  }

  // MARK: Back-off

  /// The next try of a service: full jitter, with the server's `Retry-After` as a floor.
  func backOff(_ service: Service, _ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    var state = try backoff(of: service)
    let delay = state.fail(
      at: now.wallMS, random: Random.word(), floorMS: reply.retryAfterMS ?? 0)
    try backoffs.set(
      service.rawValue, attempts: state.attempts, notBeforeMS: state.notBeforeMS)
    pauses.removeAll { $0.service == service }
    pauses.append(
      Pause(service: service, notBeforeMS: state.notBeforeMS, endsMS: now.monotonicMS + delay))
  }

  func backoff(of service: Service) throws(Failure) -> ServiceBackoff {
    let stored = try backoffs.read(service.rawValue)
    return ServiceBackoff(attempts: stored.attempts, notBeforeMS: stored.notBeforeMS)
  }

  /// How long the service is still left alone. What began in this process ends by the monotonic
  /// clock, so that a device's clock moved back does not silence it for hours.
  func pauseLeft(_ service: Service, _ now: Instant) throws(Failure) -> Int64 {
    let notBefore = try backoffs.read(service.rawValue).notBeforeMS
    if let pause = pauses.first(where: { $0.service == service && $0.notBeforeMS == notBefore }) {
      return pause.endsMS - now.monotonicMS
    }
    let left = notBefore - now.wallMS
    // Nobody asks for more than this: it was written under another clock.
    return left > Backoff.maxDelayMS ? 0 : left
  }

  func succeed(_ service: Service) throws(Failure) {
    var state = try backoff(of: service)
    guard state.isProbing else { return }
    state.succeed(pauseLeftMS: try pauseLeft(service, clock.now()))
    if !state.isProbing { try backoffs.clear(service.rawValue) }
  }

  // MARK: When to come back

  /// Derived from what is stored and under way, so that a lost wake-up is impossible.
  func wakeIn(_ now: Instant) throws(Failure) -> Int64? {
    let version = main.version
    if let wakes, stands(wakes, version, now) {
      return wakes.dueMS.map { max(0, $0 - now.monotonicMS) }
    }
    wakes = nil
    let best = try findWake(now)
    if let version, version == main.version {
      wakes = Wakes(
        dueMS: best.map { now.monotonicMS + $0 }, version: version, changes: changes,
        hasKeys: ring.keys != nil, foundMS: now.monotonicMS, offsetMS: now.wallMS - now.monotonicMS)
    }
    return best
  }

  /// Whether the same would be found: nothing has changed, the device's clock has only ticked, and
  /// nothing has fallen due since.
  private func stands(_ wakes: Wakes, _ version: FileVersion?, _ now: Instant) -> Bool {
    version == wakes.version && changes == wakes.changes && (ring.keys != nil) == wakes.hasKeys
      && now.monotonicMS >= wakes.foundMS
      && abs(now.wallMS - now.monotonicMS - wakes.offsetMS) < Engine.wakeToleranceMS
      && (wakes.isDue || now.monotonicMS < wakes.dueMS ?? Int64.max)
  }

  /// Whether something was due already, as far as that is known.
  func isKnownDue() -> Bool {
    guard let wakes, wakes.isDue else { return false }
    return stands(wakes, main.version, clock.now())
  }

  /// What was due still is: this call has only added to it.
  func keepDue() {
    guard let version = main.version else { return }
    wakes?.version = version
    wakes?.changes = changes
  }

  private func findWake(_ now: Instant) throws(Failure) -> Int64? {
    if try hasWork() { return 0 }
    var best: Int64?
    func consider(_ milliseconds: Int64) {
      // What is due and is no work all the same is held up by something that is considered too.
      if milliseconds > 0 { best = min(best ?? Int64.max, milliseconds) }
    }
    for flight in flights { consider(flight.deadlineMS - now.monotonicMS) }
    if let exchange { consider(exchange.deadlineMS - now.monotonicMS) }
    if shown.awaits, guarding.wanted, online {
      consider(guarding.sinceMS + configuration.limits.guardTimeoutMS - now.monotonicMS)
    }
    // A key store that does not answer tells nobody when it will.
    if shown.awaits, ring.keys == nil { consider(Engine.keyStorePauseMS) }
    guard online, ring.keys != nil else { return best }
    for service in [Service.auth, Service.rest, Service.pull] {
      let left = try pauseLeft(service, now)
      if left > 0 { consider(left) }
    }
    if let due = try revocations.nextMS(), due > now.wallMS { consider(due - now.wallMS) }
    guard let open else { return best }
    if let until = try leases.heldUntil(
      Engine.refreshLease, notBy: holder.bytes, now: now.wallMS)
    {
      // The other process may be done, or dead, much earlier.
      consider(min(until - now.wallMS, 1000))
    }
    consider(try lifeLeft(try sessions.read(), now) - refreshMargin(open))
    if let due = try queue.nextMS(of: open.owner) { consider(due - now.wallMS) }
    for lease in try queue.leases() where lease.holder != holder.bytes {
      consider(min(lease.untilMS - now.wallMS, 5000))
    }
    if let due = nextPullMS(open, now) { consider(due) }
    if let due = try heldDueMS(open, now) { consider(due) }
    return best
  }

  public func setNetwork(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["online"])
    let isOnline = try fields.bool("online")
    let came = isOnline && !online
    online = isOnline
    if came, ring.keys != nil, open != nil {
      owesValidation = true
      owesPull = true
      askGuard(clock.now(), anew: true)
    }
    try noticeChange()
    return [:]
  }
}
