import Base
import Policy
import Store
import Supabase

/// The host's loop: `next` gives one thing at a time, `complete` takes responses.
final class HostLoop: Part {
  /// How often to look whether another process changed the file.
  private static var lookIntervalMS: Int64 { 1000 }
  /// How often a waiting host on the screen looks whether another process has opened the folder.
  private static var newcomerIntervalMS: Int64 { 10_000 }
  /// A host asks for requests within this time; see `noteSilence`.
  private static var silenceMS: Int64 { 5000 }

  let scheduler: Scheduler
  let refresh: Refresh
  let memberships: MembershipUpdate
  let signIn: SignIn
  let settlement: UploadSettlement
  let uploader: Uploader
  let rowPuller: RowPuller
  let summary: Summary
  let search: ContactSearch
  private let token: SessionToken
  private let lifecycle: AppLifecycle
  private let sync: SyncControl
  private let decider: Decider
  /// The last call could begin.
  var canAsk = true
  /// The host has not said that the app left the screen.
  var isOnScreen: Bool
  /// When requests were last asked for, or when it was last looked whether one waits, by the monotonic clock.
  private var askedMS: Int64
  /// A request waited when it was last looked.
  private var isWaiting = false

  init(
    _ shared: Shared, scheduler: Scheduler, refresh: Refresh, memberships: MembershipUpdate,
    signIn: SignIn, settlement: UploadSettlement, uploader: Uploader, rowPuller: RowPuller,
    summary: Summary, search: ContactSearch, token: SessionToken, lifecycle: AppLifecycle,
    sync: SyncControl, decider: Decider
  ) {
    self.scheduler = scheduler
    self.refresh = refresh
    self.memberships = memberships
    self.signIn = signIn
    self.settlement = settlement
    self.uploader = uploader
    self.rowPuller = rowPuller
    self.summary = summary
    self.search = search
    self.token = token
    self.lifecycle = lifecycle
    self.sync = sync
    self.decider = decider
    isOnScreen = shared.core.configuration.role == .app
    askedMS = shared.core.clock.now().monotonicMS
    super.init(shared)
  }

  // MARK: Giving

  /// One thing for the host; nil: there is nothing now.
  ///
  /// A screen comes first, and before any other work is looked for: the call that follows an operation gives
  /// what the operation has led to.
  func next(_ what: Wanted) throws(Failure) -> JSON? {
    let now = core.clock.now()
    if what.includesRequests { hear(now) }
    if what.includesNews {
      // A disk that does not take it hides no screen; `take` tries again.
      try? notices.acknowledge()
      // Where another handle has written or time has passed meanwhile, the screen may be old: look first.
      if !core.neighbours.urgesLook, news.hasFreshScreen(now), let screen = news.takeScreen() {
        return ["screen": screen]
      }
    }
    wakeTimer.beginLook(what)
    let failure = try workOffKept(now)
    try look(now)
    if what.includesNews, let found = try takeNews() { return found }
    if what.includesRequests, let request = try nextRequest(now) { return ["request": request] }
    if let failure { throw failure }
    return nil
  }

  /// What the reader is told when there is nothing: in how many milliseconds to ask again; nil: after a call
  /// or a response.
  func promise(_ what: Wanted) throws(Failure) -> Int64? {
    let now = core.clock.now()
    let wakeMS = try wakeIn(what, now)
    wakeTimer.promise(what, wakeMS, now)
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

  private func takeNews() throws(Failure) -> JSON? {
    if let screen = news.takeScreen() { return ["screen": screen] }
    if let answer = news.takeAnswer() { return ["answer": answer] }
    if let notice = try notices.take() { return ["notice": notice] }
    let state = try news.takeSync { (run) throws(Failure) in try sync.describe(run) }
    return state.map { ["sync": $0] }
  }

  /// Make the next request, and give it.
  private func nextRequest(_ now: Instant) throws(Failure) -> JSON? {
    if let request = inFlight.take(now) { return request }
    while let job = try scheduler.next(now) {
      try send(job, now)
      if let request = inFlight.take(now) { return request }
      try scheduler.prepare(now)
    }
    return nil
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
        if response.isOwn(request.purpose) { try core.learnServerTime(response.dateMS, now) }
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

  /// A new call begins: what the last one gave has reached the host.
  func begin() {
    news.confirm()
    notices.confirm()
    inFlight.confirmTaken()
  }

  /// Building the reply failed; give the same again.
  func replyWasLost() {
    news.restore()
    notices.restore()
    inFlight.restoreTaken()
  }

  func willRunAgain() {
    replyWasLost()
    inFlight.restoreFinished()
  }

  private func wakeIn(_ what: Wanted, _ now: Instant) throws(Failure) -> Int64? {
    if core.neighbours.urgesLook || core.database.hasForeignCommits { return 0 }
    if what.includesNews, try token.hasNews() { return 0 }
    return try wakeTimer.wakeIn(what, now) { (now) throws(Failure) in
      try scheduler.nextWakeMS(what, now)
    }
  }

  /// How long the host may sleep. The user looks at the app: what another process changes must show soon.
  private func beforeNextLook(_ wakeMS: Int64?) -> Int64? {
    guard isOnScreen, wakeMS != 0, core.neighbours.existElsewhere else { return wakeMS }
    return min(wakeMS ?? Int64.max, HostLoop.lookIntervalMS)
  }

  /// The longest sleep of a thread that waits.
  var longestWaitMS: Int64 { isOnScreen ? HostLoop.newcomerIntervalMS : Int64.max }

  /// Whether this reader should ask now: there is work, something is due earlier than it was told, or that
  /// time is over.
  func wants(_ what: Wanted) throws(Failure) -> Bool {
    guard canAsk else { return false }
    let now = core.clock.now()
    return wakeTimer.isDue(what, try wakeIn(what, now), now)
  }
}
