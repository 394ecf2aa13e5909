import Base
import Policy
import Store
import Supabase

/// The host's loop: `poll` hands out requests and events, `complete` takes responses.
final class HostLoop {
  /// How often to look whether another process changed the file.
  private static var lookIntervalMS: Int64 { 1000 }
  /// How often a waiting host on the screen looks whether another process has opened the folder.
  private static var newcomerIntervalMS: Int64 { 10_000 }

  private let core: Core
  private let sessions: SessionStore
  private let scheduler: Scheduler
  private let dispatch: Dispatch
  private let wakeTimer: WakeTimer
  private let inFlight: InFlight
  private let events: EventQueue
  private let signIn: SignIn
  private let token: SessionToken
  private let liveReader: LiveContactReader
  private let decider: Decider
  /// The last call could begin.
  var canPoll = true
  /// The host has not said that the app left the screen.
  var isOnScreen = true

  init(
    _ core: Core, _ sessions: SessionStore, scheduler: Scheduler, dispatch: Dispatch,
    wakeTimer: WakeTimer, inFlight: InFlight, events: EventQueue, signIn: SignIn,
    token: SessionToken, liveReader: LiveContactReader, decider: Decider
  ) {
    self.core = core
    self.sessions = sessions
    self.scheduler = scheduler
    self.dispatch = dispatch
    self.wakeTimer = wakeTimer
    self.inFlight = inFlight
    self.events = events
    self.signIn = signIn
    self.token = token
    self.liveReader = liveReader
    self.decider = decider
  }

  func poll(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["ack", "max_events", "only_new", "from_oldest"])
    let limit = try fields.integer(ifPresent: "max_events", in: 0...Int64(EventQueue.pageSize))
    let onlyNew = try fields.bool(ifPresent: "only_new") ?? false
    if let sequence = try fields.integer(ifPresent: "ack", in: 0...Fields.safe.upperBound) {
      try events.acknowledge(upTo: sequence)
    }
    if try fields.bool(ifPresent: "from_oldest") ?? false { events.forgetHandedOut() }
    let now = core.clock.now()
    // A poll looks for work itself, whatever the wake-up was.
    wakeTimer.beginPoll()
    core.neighbours.urgesPoll = false
    sessions.keys.lookForOwed()
    try sessions.keys.eraseOwed()
    try expire(now)
    try signIn.expire(now, decider)
    try decider.emitIfChanged()
    try sendAll(now)
    try liveReader.answerEnded(now)
    try token.announce()
    if events.holds("contact"), try !decider.canUse(decider.assess(.navigate).situation) {
      events.withdrawContacts(core.message(.contactWithdrawn))
    }
    do throws(Failure) {
      let taken = try events.take(
        limit: limit.map { Int($0) } ?? EventQueue.pageSize, onlyNew: onlyNew)
      let reply: JSON = [:]
      let wakeMS = try wakeIn(now)
      wakeTimer.promise(wakeMS, now)
      reply.set("requests", .array(inFlight.takeOutbox()))
      reply.set("events", .array(taken))
      reply.set("wake_in_ms", JSON(beforeNextLook(wakeMS)))
      return reply
    } catch {
      events.restore()
      throw error
    }
  }

  private func sendAll(_ now: Instant) throws(Failure) {
    try scheduler.prepare(now)
    while let job = try scheduler.next(now) {
      try dispatch.send(job, now)
      try scheduler.prepare(now)
    }
  }

  func complete(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["id", "status", "headers", "body", "error"])
    let id = try fields.integer("id", in: 0...Fields.safe.upperBound)
    let now = core.clock.now()
    let response = try HTTPResponse.read(
      fields, nowMS: try core.serverMS(now), most: inFlight.find(id)?.purpose.mostValues ?? 0)
    try expire(now)
    guard let request = inFlight.find(id) else { return ["accepted": false] }
    if response.isOwn(request.purpose) { try core.learnServerTime(response.dateMS, now) }
    try dispatch.finish(request, response, now)
    try decider.emitIfChanged()
    try token.announce()
    return ["accepted": true]
  }

  /// Handle requests after their deadline as timed out.
  private func expire(_ now: Instant) throws(Failure) {
    for request in inFlight.late(now) {
      try dispatch.finish(request, HTTPResponse.timedOut, now)
    }
  }

  // MARK: Between calls

  /// A new call begins: what the last poll handed out has reached the host.
  func begin() {
    events.confirm()
    inFlight.confirmOutbox()
  }

  /// Building the reply failed; hand out the same requests and events at the next poll.
  func replyWasLost() {
    events.restore()
    inFlight.restoreOutbox()
  }

  func willRunAgain() {
    replyWasLost()
    inFlight.restoreFinished()
  }

  private func wakeIn(_ now: Instant) throws(Failure) -> Int64? {
    if core.neighbours.urgesPoll || core.database.hasForeignCommits { return 0 }
    if try token.hasNews() { return 0 }
    return try wakeTimer.wakeIn(now) { (now) throws(Failure) in try scheduler.nextWakeMS(now) }
  }

  /// How long the host may sleep. The user looks at the app: what another process changes must show soon.
  private func beforeNextLook(_ wakeMS: Int64?) -> Int64? {
    guard isOnScreen, wakeMS != 0, core.neighbours.existElsewhere else { return wakeMS }
    return min(wakeMS ?? Int64.max, HostLoop.lookIntervalMS)
  }

  /// Whether the host should poll now: there is work, something is due earlier than the last poll
  /// said, or that time is over.
  func wantsPoll() throws(Failure) -> Bool {
    guard canPoll else { return false }
    let now = core.clock.now()
    return wakeTimer.isDue(try wakeIn(now), now)
  }

  /// How long a waiting thread may sleep; 0: poll now; nil: until it is woken.
  func dueIn() throws(Failure) -> Int64? {
    if try wantsPoll() { return 0 }
    let now = core.clock.now()
    let wake = try wakeIn(now)
    // A host that waits before its first poll has been told nothing, and some times count from the query.
    if wakeTimer.promisedIn(now) == nil { wakeTimer.promise(wake, now) }
    let promised = wakeTimer.promisedIn(now) ?? Int64.max
    let next = min(beforeNextLook(wake) ?? Int64.max, promised)
    if isOnScreen { return min(next, HostLoop.newcomerIntervalMS) }
    return next == Int64.max ? nil : next
  }
}
