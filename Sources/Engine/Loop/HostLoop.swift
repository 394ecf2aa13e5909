import Base
import Policy
import Store
import Supabase

/// The host's loop: `next` gives one thing at a time, `complete` takes responses.
///
/// `wake_in_ms` is computed from what is stored and in flight, never from a flag, so no wake-up is lost.
final class HostLoop: Rules {
  /// How often to look whether another process changed the file.
  private static var lookIntervalMS: Int64 { 1000 }
  /// How often a waiting host on the screen looks whether another process has opened the folder.
  private static var newcomerIntervalMS: Int64 { 10_000 }
  /// A host asks for requests within this time; see `noteSilence`.
  private static var silenceMS: Int64 { 5000 }

  /// What `next` has found.
  private enum Found { case screen, answer, sync, notice(Int64), request(InFlightRequest) }

  let parts: Parts
  /// What the running call has found for the host. It is the host's when the reply is made.
  private var found: Found?
  /// By `Wanted`.
  private var readers = [Reader](repeating: Reader(), count: 4)
  /// The last call could begin.
  var canAsk = true
  /// When requests were last asked for, or when it was last looked whether one waits, by the monotonic clock.
  private var askedMS: Int64
  /// A request waited when it was last looked.
  private var isWaiting = false

  init(_ parts: Parts) {
    self.parts = parts
    parts.hostView.isOnScreen = parts.core.configuration.role == .app
    askedMS = parts.core.clock.now().monotonicMS
  }

  // MARK: Giving

  /// The screen to begin with.
  func firstScreen() throws(Failure) -> JSON? {
    _ = try lifecycle.resume([:])
    return findScreen()?["screen"]
  }

  /// One thing for the host; nil: there is nothing now.
  ///
  /// A screen comes first, and before any other work is looked for: the call that follows an operation gives
  /// what the operation has led to.
  func next(_ what: Wanted) throws(Failure) -> JSON? {
    let now = core.clock.now()
    if what.includesRequests { hear(now) }
    if what.includesNews {
      // A disk that does not take it hides no screen; `findNews` tries again.
      try? notices.acknowledge()
      // Where another handle has written or time has passed meanwhile, the screen may be old: look first.
      if !core.neighbours.urgesLook, news.hasFreshScreen(now) { return findScreen() }
    }
    // Whoever looks may do what the others were woken for.
    for index in readers.indices { readers[index].isWoken = false }
    readers[what.rawValue] = Reader()
    let failure = try workOffKept(now)
    try look(now)
    if what.includesNews, let news = try findNews() { return news }
    if what.includesRequests, let request = try findRequest(now) { return request }
    if let failure { throw failure }
    return nil
  }

  /// What the reader is told when there is nothing: in how many milliseconds to ask again; nil: after a call
  /// or a response.
  func promise(_ what: Wanted) throws(Failure) -> Int64? {
    let now = core.clock.now()
    let wakeMS = try wakeIn(what, now)
    readers[what.rawValue].promise(wakeMS, now)
    return beforeNextLook(wakeMS)
  }

  /// Do what is due, whoever asks.
  private func look(_ now: Instant) throws(Failure) {
    core.neighbours.urgesLook = false
    sessions.keys.erasures.lookForOwed()
    try sessions.keys.erasures.eraseOwed()
    try expire(now)
    try signIn.expire(now)
    // The first screen, if `open` could not decide.
    if core.configuration.role == .app, hostView.shown.fingerprint.isEmpty {
      _ = try lifecycle.resume([:])
    }
    try decider.followChange()
    try scheduler.prepare(now)
    try search.answerEnded(now)
    try token.announce()
    if news.holdsContact, try !decider.canUse(decider.assess(.navigate).situation) {
      news.withdrawContacts(core.message(.contactWithdrawn))
    }
  }

  private func findScreen() -> JSON? {
    guard let screen = news.screen else { return nil }
    found = .screen
    return ["screen": screen]
  }

  private func findNews() throws(Failure) -> JSON? {
    if let screen = findScreen() { return screen }
    if let answer = news.answer {
      found = .answer
      return ["answer": answer]
    }
    if let (number, notice) = try notices.next() {
      found = .notice(number)
      return ["notice": notice]
    }
    guard news.hasSync else { return nil }
    let state = try sync.describe(news.run)
    found = .sync
    return ["sync": state]
  }

  /// The next request; it is made if there is none.
  private func findRequest(_ now: Instant) throws(Failure) -> JSON? {
    while true {
      if let request = inFlight.next(now), let outgoing = request.outgoing {
        found = .request(request)
        return ["request": outgoing]
      }
      guard let job = try scheduler.next(now) else { return nil }
      try send(job, now)
      if inFlight.next(now) == nil { try scheduler.prepare(now) }
    }
  }

  /// The reply of the call is made: the host has what was found.
  func give() {
    switch found {
    case .screen: news.dropScreen()
    case .answer: news.dropAnswer()
    case .notice(let number): notices.give(number)
    case .sync: news.dropSync()
    case .request(let request): inFlight.give(request)
    case nil: break
    }
    found = nil
  }

  // MARK: Responses

  /// Take a response. From here on the library has it: a failure of storage only delays what follows. Before
  /// the call begins, because that may fail, too.
  func keepResponse(_ request: JSON) throws(Failure) {
    let fields = try Fields(request, known: ["id", "status", "headers", "body", "error"])
    let id = try fields.integer("id", in: 0...Fields.safe.upperBound)
    let now = core.clock.now()
    let found = inFlight.find(id)
    let response = try HTTPResponse.read(
      fields, nowMS: core.lastServerMS(now), most: found?.purpose.mostValues ?? 0)
    if let found, found.deadlineMS > now.monotonicMS { inFlight.keep(response, for: found) }
  }

  /// Work off what was kept.
  func complete() throws(Failure) -> JSON {
    let now = core.clock.now()
    if let failure = try workOffKept(now) { throw failure }
    try expire(now)
    try decider.followChange()
    try token.announce()
    return [:]
  }

  /// Work the kept responses off. Returns the first failure; throws one after which the call runs again.
  private func workOffKept(_ now: Instant) throws(Failure) -> Failure? {
    var first: Failure?
    for request in inFlight.answered {
      // The response before it may have made this one too old.
      guard let response = request.response, inFlight.find(request.id) != nil else { continue }
      do throws(Failure) {
        try serviceTime.learn(from: response, to: request, now)
        try finish(request, response, now)
      } catch {
        if error.code == .storageDamaged || core.reads.mustRunAgain { throw error }
        // There is room that was kept for such a call.
        if error.code == .storageFull, !core.database.isTight { throw error }
        Log.line(.warning, "response \(request.id) waits: \(error.code.rawValue)")
        first = first ?? error
      }
    }
    return first
  }

  /// Handle requests after their deadline as timed out.
  private func expire(_ now: Instant) throws(Failure) {
    for request in inFlight.late(now) {
      try finish(request, HTTPResponse.timedOut, now)
    }
  }

  // MARK: A host that does not ask

  /// Requests are asked for.
  private func hear(_ now: Instant) {
    askedMS = now.monotonicMS
    isWaiting = false
    problems.endSilence()
  }

  /// A call begins. If nothing has asked for requests since one could be sent, and that is a while ago, the
  /// host has no loop, or it has ended.
  func noteSilence() throws(Failure) {
    let now = core.clock.now()
    guard abs(now.monotonicMS - askedMS) >= HostLoop.silenceMS else { return }
    askedMS = now.monotonicMS
    let job = try scheduler.next(now)
    if let job, isWaiting { problems.noteSilence(job.purpose, now) }
    isWaiting = job != nil
  }

  // MARK: Between calls

  /// A new call begins. What the last one has found, and no reply was made of, is given again.
  func begin() {
    found = nil
    inFlight.forgetFinished()
  }

  private func wakeIn(_ what: Wanted, _ now: Instant) throws(Failure) -> Int64? {
    if core.neighbours.urgesLook || core.database.hasForeignCommits { return 0 }
    if what.includesNews, try token.hasNews() { return 0 }
    return try scheduler.nextWakeMS(what, now)
  }

  /// How long the host may sleep. The user looks at the app: what another process changes must show soon.
  private func beforeNextLook(_ wakeMS: Int64?) -> Int64? {
    guard hostView.isOnScreen, wakeMS != 0, core.neighbours.existElsewhere else { return wakeMS }
    return min(wakeMS ?? Int64.max, HostLoop.lookIntervalMS)
  }

  /// The longest sleep of a thread that waits.
  var longestWaitMS: Int64 { hostView.isOnScreen ? HostLoop.newcomerIntervalMS : Int64.max }

  /// Whether this reader should ask now: there is work, something is due earlier than it was told, or that
  /// time is over.
  func wants(_ what: Wanted) throws(Failure) -> Bool {
    guard canAsk else { return false }
    if readers[what.rawValue].isWoken { return true }
    let now = core.clock.now()
    let wakeMS = try wakeIn(what, now)
    let isDue = readers[what.rawValue].isDue(wakeMS, now)
    readers[what.rawValue].isWoken = isDue
    return isDue
  }
}
