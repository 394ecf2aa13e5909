public import Base
import Policy
import Store
import Supabase
public import Vault

/// The state machine: one per handle, called by one thread at a time.
///
/// It owns the parts and has one function per operation of the C API. What must last is in the
/// files; a call reads it again if another process has written there. Memory holds only what may be
/// lost: requests in flight, what the host shows, and the readable session.
///
/// Parts are built bottom up and know only parts below them, so there are no cycles: state first
/// (`News`, `InFlight`, `MembershipCheck`, …), then `SessionStore`, which resets that state when
/// a session ends, then the parts with rules, then `Decider`, `Scheduler` and `HostLoop`.
///
/// What another module calls here is `@export(interface)`: without it, Embedded Swift compiles the body, and
/// most of this module with it, once more in that module.
public final class Engine {
  private let core: Core
  private let news: News
  private let reserve: Reserve
  private let sessions: SessionStore
  private let refresh: Refresh
  private let signIn: SignIn
  private let sessionStart: SessionStart
  private let presence: Presence
  private let token: SessionToken
  private let logout: Logout
  private let orgSelection: OrgSelection
  private let decider: Decider
  private let presenter: Presenter
  private let intake: ItemIntake
  private let report: ItemReport
  private let uploader: Uploader
  private let cache: CacheFile
  private let items: ItemList
  private let search: ContactSearch
  private let summary: Summary
  private let recovery: Recovery
  private let sync: SyncControl
  private let loop: HostLoop

  /// Opens the files. `keyStore` nil: the built-in file store, if the configuration asks for it.
  @export(interface) public init(_ configuration: Configuration, keyStore: (any KeyStore)?)
    throws(Failure)
  {
    try Vault.start()
    try configuration.check(hasKeyStore: keyStore != nil)
    let clock = Clock(configuration.clock)
    try DataFolder.make(configuration.dataFolder)
    try configuration.resolveDataFolder()
    let folder = configuration.dataFolder
    // Before anything is changed. Afterwards nobody else can put a file there.
    try PrivateFile.check(folder: folder, hasKeys: configuration.usesKeyFiles)
    let revision = Revision()
    let keyRing = KeyRing(
      keyStore ?? FileKeyStore(folder: folder + "/keys"),
      deadlineMS: configuration.limits.guardTimeoutMS, clock, isOfHost: keyStore != nil)
    let opened = try Engine.openMain(in: folder, at: clock.now())
    try KeyStoreChange.refuse(configuration, opened.database)
    let core = Core(configuration, clock, keyRing, opened.database, revision)
    reserve = Reserve(core)

    // State, without rules about other parts.
    let reachability = Reachability(revision)
    let hostView = HostView(revision)
    let news = News(revision)
    let notices = Notices(core)
    let inFlight = InFlight(revision, after: Int64(Random.word() >> 12))
    let wakeTimer = WakeTimer(core)
    let pauses = ServicePauses(core)
    let tokens = TokenState(core)
    let pendingSignIn = PendingSignInState(revision)
    let check = MembershipCheck(core, reachability, hostView)
    let uploads = UploadState(revision)
    let pulls = PullState(revision, configuration.backend)
    let live = LiveContacts(revision)
    let cache = CacheFile(core, notices, pulls)
    let ownRows = OwnRowCache(core, cache)
    let problems = Problems(core)
    let sessions = SessionStore(
      core, news: news, notices: notices, membershipCheck: check, tokens: tokens,
      pendingSignIn: pendingSignIn,
      inFlight: inFlight, uploads: uploads, pulls: pulls, liveContacts: live, cache: cache,
      problems: problems)

    // The session.
    let lock = Lock(core, sessions)
    let links = ItemLinks(core)
    let recovery = Recovery(
      core, sessions, notices: notices, cache: cache, links: links, hasRecovered: opened.replaced)
    let revocations = Revocation(core, inFlight)
    let refresh = Refresh(
      core, sessions, tokens: tokens, membershipCheck: check, pauses: pauses,
      reachability: reachability, notices: notices, inFlight: inFlight, problems: problems)
    let sessionStart = SessionStart(
      core, sessions, recovery: recovery, hostView: hostView, revocations: revocations,
      tokens: tokens, pendingSignIn: pendingSignIn, membershipCheck: check, pauses: pauses,
      reachability: reachability, pulls: pulls, cache: cache)
    let signIn = SignIn(
      core, sessions, recovery: recovery, sessionStart: sessionStart, state: pendingSignIn,
      revocations: revocations, pauses: pauses, reachability: reachability, hostView: hostView,
      inFlight: inFlight)
    let syncRuns = SyncRunReporter(core, news)
    let memberships = MembershipUpdate(
      core, sessions, check: check, tokens: tokens, refresh: refresh, pauses: pauses,
      reachability: reachability, notices: notices, cache: cache, pulls: pulls, syncRun: syncRuns,
      problems: problems, inFlight: inFlight)

    // The queue and the cache.
    let summary = Summary(core, cache)
    let parking = Parking(core, notices, syncRuns)
    let settlement = UploadSettlement(
      core, sessions, own: ownRows, state: uploads, links: links, syncRuns: syncRuns,
      refresh: refresh,
      check: check,
      pauses: pauses, reachability: reachability, parking: parking, pulls: pulls, summary: summary)
    let uploader = Uploader(
      core, state: uploads, settlement: settlement, parking: parking, syncRuns: syncRuns,
      pauses: pauses, inFlight: inFlight)
    let reads = ReadFailures(core, refresh, pauses, reachability)
    let rowPuller = RowPuller(
      core, sessions, state: pulls, cache: cache, reads: reads, pauses: pauses,
      reachability: reachability, news: news, problems: problems, inFlight: inFlight)
    let summaryPuller = SummaryPuller(
      core, sessions, state: pulls, summary: summary, reads: reads, pauses: pauses,
      news: news, inFlight: inFlight)
    let liveReader = LiveContactReader(
      core, sessions, live: live, refresh: refresh, pauses: pauses, reachability: reachability,
      pulls: pulls,
      news: news, inFlight: inFlight)

    // Decisions.
    let presenter = Presenter(
      core, sessions, check: check, pendingSignIn: pendingSignIn, reachability: reachability)
    let orgSelection = OrgSelection(
      core, sessions, check: check, cache: cache, pulls: pulls, presenter: presenter)
    let decider = Decider(
      core, sessions, lock: lock, check: check, tokens: tokens, pendingSignIn: pendingSignIn,
      reachability: reachability, news: news, hostView: hostView, presenter: presenter,
      orgSelection: orgSelection, recovery: recovery)

    // The operations.
    presence = Presence(
      core, sessions, lock: lock, keyless: KeylessFiles(core, sessions, links), refresh: refresh,
      tokens: tokens, check: check, pulls: pulls, live: live, pauses: pauses,
      reachability: reachability, hostView: hostView, decider: decider)
    token = SessionToken(
      core, sessions, refresh: refresh, pauses: pauses, reachability: reachability,
      news: news, decider: decider)
    logout = Logout(
      core, sessions, revocations: revocations, uploader: uploader, pauses: pauses,
      decider: decider)
    intake = ItemIntake(
      core, reserve: reserve, links: links, own: ownRows, syncRuns: syncRuns, wakeTimer: wakeTimer,
      decider: decider)
    let hold = UploadHold(sessions, refresh: refresh, pauses: pauses)
    report = ItemReport(
      core, hold: hold, reachability: reachability, problems: problems, decider: decider)
    items = ItemList(
      core, cache: cache, own: ownRows, report: report, presenter: presenter, decider: decider)
    search = ContactSearch(
      core, cache: cache, live: live, presenter: presenter, reachability: reachability,
      decider: decider)
    sync = SyncControl(
      core, sessions, check: check, reachability: reachability, pauses: pauses, hold: hold,
      inFlight: inFlight, pulls: pulls, cache: cache, problems: problems, decider: decider)
    let scheduler = Scheduler(
      core, sessions, decider: decider, tokens: tokens, pendingSignIn: pendingSignIn,
      refresh: refresh, check: check, reachability: reachability, pauses: pauses, news: news,
      notices: notices,
      hostView: hostView, inFlight: inFlight, uploader: uploader, live: live, pulls: pulls,
      rowPuller: rowPuller, summaryPuller: summaryPuller)
    let dispatch = Dispatch(
      core, sessions, inFlight: inFlight, refresh: refresh, memberships: memberships,
      signIn: signIn, revocations: revocations, uploader: uploader, settlement: settlement,
      reads: reads, rowPuller: rowPuller, summaryPuller: summaryPuller,
      liveReader: liveReader, problems: problems, decider: decider)
    loop = HostLoop(
      core, sessions, scheduler: scheduler, dispatch: dispatch, wakeTimer: wakeTimer,
      inFlight: inFlight, news: news, notices: notices, signIn: signIn, token: token,
      liveReader: liveReader, presence: presence, hostView: hostView, sync: sync,
      problems: problems, decider: decider)
    self.core = core
    self.news = news
    self.cache = cache
    self.sessions = sessions
    self.refresh = refresh
    self.signIn = signIn
    self.sessionStart = sessionStart
    self.orgSelection = orgSelection
    self.decider = decider
    self.presenter = presenter
    self.uploader = uploader
    self.summary = summary
    self.recovery = recovery
    try start()
  }

  /// A full disk is no reason not to open: SQLite's index of the log takes some of the reserve.
  private static func openMain(
    in folder: String, at now: Instant
  ) throws(Failure) -> (database: Database, replaced: Bool) {
    do throws(Failure) {
      return try DataFolder.openMain(in: folder, at: now)
    } catch  where error.code == .storageFull && Reserve.empty(in: folder) > 0 {
      return try DataFolder.openMain(in: folder, at: now)
    }
  }

  /// Continue what earlier processes left unfinished.
  private func start() throws(Failure) {
    // A full disk is no reason not to open: what is stored can be read and sent.
    try? reserve.make()
    core.reads.begin(mayRunAgain: false)
    defer { core.reads.end() }
    var tries = 0
    while true {
      do throws(Failure) {
        try ProjectChange.refuse(core.configuration, core.database)
        try recovery.findUnfinished()
        return try uploader.reclaimVoidLeases(core.clock.now())
      } catch {
        switch error.code {
        case .storageDamaged:
          tries += 1
          guard tries <= Engine.recoveries, try recovery.recover() else { throw error }
        case .storageFull:
          // What is left is reclaimed later.
          guard !core.database.isTight, releaseReserve() else { return }
        default: throw error
        }
      }
    }
  }

  /// How often a call may recover: it makes the file sound, and sets it aside when that was not enough.
  @export(interface) public static var recoveries: Int { 2 }

  /// Give back what this handle holds. Called once, before the handle is dropped.
  @export(interface) public func close() {
    core.reads.begin(mayRunAgain: false)
    defer { core.reads.end() }
    _ = try? uploader.releaseLeases()
    _ = try? refresh.releaseLease()
    sessions.reset(.file)
  }

  /// A fork has copied the handle into this process, where nobody uses it.
  @export(interface) public func disown() {
    core.database.closeCopy()
    cache.closeCopy()
  }

  // MARK: Calls

  /// A call begins to read; see `CallReads`.
  @export(interface) public func beginReads(mayRunAgain: Bool = true, isAlone: Bool = false) {
    core.reads.begin(mayRunAgain: mayRunAgain, isAlone: isAlone)
  }

  /// The call has read all that it needs. It holds no transaction any more.
  @export(interface) public func endReads() { core.reads.end() }

  /// Another process has committed between two reads of the call, which has changed nothing: run it again.
  @export(interface) public var mustRunAgain: Bool { core.reads.mustRunAgain }

  /// Whether a damaged main file was set aside when the current one was opened.
  @export(interface) public var recovered: Bool { recovery.hasRecovered }

  /// The key store in use, by its name in the API.
  @export(interface) public var keyStoreName: StaticCString {
    core.configuration.usesKeyFiles ? "file" : "host"
  }

  /// The text of the prompt with which the user releases the key behind presence.
  @export(interface) public var unlockPrompt: JSON { core.text(.unlockPrompt) }

  /// Prepare for a call. While that fails, no host is urged to ask: it would in vain.
  @export(interface) public func begin() throws(Failure) {
    loop.canAsk = false
    loop.begin()
    try recovery.followFiles()
    sessions.followNeighbours()
    // A call does not fail because an erasure is owed, or a sign-in failed before.
    do throws(Failure) { try sessions.keys.eraseOwed() } catch {}
    do throws(Failure) { try sessions.keepUsable() } catch {}
    try sessions.confirmVault()
    loop.canAsk = true
    do throws(Failure) { try loop.noteSilence() } catch {}
  }

  /// Replace a damaged file; returns false when the failure had another cause.
  @export(interface) public func recover() throws(Failure) -> Bool { try recovery.recover() }
  /// The disk is full: give the call the room that was kept. Returns false when there is none.
  @export(interface) public func releaseReserve() -> Bool { reserve.release() }

  /// Building the reply failed; give the same again.
  @export(interface) public func replyWasLost() { loop.replyWasLost() }
  /// The call runs again, because another process has written meanwhile: what it did in memory is undone.
  @export(interface) public func willRunAgain() { loop.willRunAgain() }

  // MARK: Other handles on the folder

  /// A call is over. Returns whether it has changed the data: other handles are told then.
  @export(interface) public func takeChange() -> Bool {
    sessions.keys.noteWritten()
    return core.neighbours.takeChange(core.database)
  }

  /// The readers that have asked for a descriptor or waited, as bits. Nobody else sees what a call raises, and
  /// to find it out costs as much as a small call.
  private var awaited: UInt32 = 0

  /// A reader begins to wait. Returns whether it is new.
  @export(interface) public func await(_ what: Wanted) -> Bool {
    let bit = UInt32(1) << UInt32(what.rawValue)
    defer { awaited |= bit }
    return awaited & bit == 0
  }

  @export(interface) public var isAwaited: Bool { awaited != 0 }

  /// The awaited readers that should ask now, as bits. If the storage cannot be read now, the next call tells.
  @export(interface) public func wanting() -> UInt32 {
    var bits: UInt32 = 0
    for what in Wanted.allCases {
      let bit = UInt32(1) << UInt32(what.rawValue)
      if awaited & bit != 0, (try? loop.wants(what)) ?? false { bits |= bit }
    }
    return bits
  }

  // MARK: Operations

  @export(interface) public func setClock(_ request: JSON) throws(Failure) -> JSON {
    try core.setClock(request)
  }

  @export(interface) public func sessionAdopt(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["session"])
    let reply = try TokenReply.read(try fields.required("session"), at: "/session")
    try sessionStart.begin(reply)
    try decider.decide(.navigate)
    return [:]
  }

  @export(interface) public func signInBegin(_ request: JSON) throws(Failure) -> JSON {
    try signIn.begin(request)
  }

  @export(interface) public func signInComplete(_ request: JSON) throws(Failure) -> JSON {
    try signIn.complete(request, decider)
  }

  @export(interface) public func signInCancel(_ request: JSON) throws(Failure) -> JSON {
    try signIn.cancel(request, decider)
  }

  @export(interface) public func sessionResume(_ request: JSON) throws(Failure) -> JSON {
    loop.isOnScreen = true
    return try presence.resume(request)
  }

  @export(interface) public func sessionUnlock(_ request: JSON) throws(Failure) -> JSON {
    try presence.unlock(request)
  }

  @export(interface) public func sessionLock(_ request: JSON) throws(Failure) -> JSON {
    try presence.lock(request)
  }

  @export(interface) public func sessionBackground(_ request: JSON) throws(Failure) -> JSON {
    loop.isOnScreen = false
    return try presence.background(request)
  }

  @export(interface) public func sessionForeground(_ request: JSON) throws(Failure) -> JSON {
    loop.isOnScreen = true
    return try presence.foreground(request)
  }

  @export(interface) public func sessionStatus(_ request: JSON) throws(Failure) -> JSON {
    try presence.status(request)
  }

  @export(interface) public func sessionToken(_ request: JSON) throws(Failure) -> JSON {
    try token.get(request)
  }

  @export(interface) public func sessionLogout(_ request: JSON) throws(Failure) -> JSON {
    try logout.logOut(request)
  }

  @export(interface) public func orgList(_ request: JSON) throws(Failure) -> JSON {
    try orgSelection.list(request, decider)
  }

  @export(interface) public func orgSelect(_ request: JSON) throws(Failure) -> JSON {
    try orgSelection.select(request, decider)
  }

  @export(interface) public func routeCheck(_ request: JSON) throws(Failure) -> JSON {
    try orgSelection.checkRoute(request, decider)
  }

  @export(interface) public func queueAdd(_ request: JSON) throws(Failure) -> JSON {
    try intake.add(request)
  }

  @export(interface) public func queueList(_ request: JSON) throws(Failure) -> JSON {
    try report.list(request)
  }

  @export(interface) public func queueGet(_ request: JSON) throws(Failure) -> JSON {
    try report.get(request)
  }

  @export(interface) public func queueEdit(_ request: JSON) throws(Failure) -> JSON {
    try intake.edit(request)
  }

  @export(interface) public func queueCancel(_ request: JSON) throws(Failure) -> JSON {
    try intake.cancel(request)
  }

  @export(interface) public func queueRetry(_ request: JSON) throws(Failure) -> JSON {
    try intake.retry(request)
  }

  @export(interface) public func queueExport(_ request: JSON) throws(Failure) -> JSON {
    try report.export(request)
  }

  @export(interface) public func queueExplain(_ request: JSON) throws(Failure) -> JSON {
    try report.explain(request)
  }

  @export(interface) public func itemList(_ request: JSON) throws(Failure) -> JSON {
    try items.list(request)
  }

  @export(interface) public func contactSearch(_ request: JSON) throws(Failure) -> JSON {
    try search.search(request)
  }

  @export(interface) public func contactGet(_ request: JSON) throws(Failure) -> JSON {
    try search.get(request)
  }

  @export(interface) public func summaryGet(_ request: JSON) throws(Failure) -> JSON {
    try summary.get(request, decider, presenter)
  }

  @export(interface) public func setNetwork(_ request: JSON) throws(Failure) -> JSON {
    let reply = try presence.setNetwork(request)
    try signIn.followNetwork(decider)
    return reply
  }

  @export(interface) public func syncNow(_ request: JSON) throws(Failure) -> JSON {
    try sync.start(request)
  }

  @export(interface) public func syncStatus(_ request: JSON) throws(Failure) -> JSON {
    try sync.status(request)
  }

  @export(interface) public func complete(_ request: JSON) throws(Failure) -> JSON {
    try loop.complete()
  }

  /// Take a response, in memory alone. Fails only for a malformed request.
  @export(interface) public func keepResponse(_ request: JSON) throws(Failure) {
    try loop.keepResponse(request)
  }

  // MARK: What the host gets

  /// The screen to begin with, from what is stored; null where nobody is at the screen, and before a manual
  /// clock is set.
  @export(interface) public func firstScreen() throws(Failure) -> JSON {
    guard core.configuration.role == .app, !core.clock.isManual else { return .null }
    _ = try presence.resume([:])
    return news.takeScreen() ?? .null
  }

  /// The next thing for this reader; nil: there is nothing now.
  @export(interface) public func next(_ what: Wanted) throws(Failure) -> JSON? {
    let found = try loop.next(what)
    reserve.followRoom()
    return found
  }

  /// There is nothing: in how many milliseconds the reader should ask again; nil: after a call or a response.
  @export(interface) public func wakeIn(_ what: Wanted) throws(Failure) -> Int64? {
    try loop.promise(what)
  }

  /// The longest sleep of a thread that waits.
  @export(interface) public var longestWaitMS: Int64 { loop.longestWaitMS }
}
