import Base
import Policy
import Store
import Supabase
import Vault

/// What the process remembers beside the files. It may be lost: `SessionStore.reset` drops what belongs to
/// a session that ends.
final class Memory {
  let core: Core
  let reachability: Reachability
  let hostView: HostView
  let news: News
  let notices: Notices
  let inFlight: InFlight
  let wakeTimer: WakeTimer
  let pauses: ServicePauses
  let tokens: TokenState
  let pendingSignIn: PendingSignInState
  let check: MembershipCheck
  let uploads: UploadState
  let pulls: PullState
  let live: LiveContacts
  let cache: CacheFile
  let problems: Problems

  init(_ core: Core) {
    self.core = core
    reachability = Reachability(core.revision)
    hostView = HostView(core.revision)
    news = News(core.revision)
    notices = Notices(core)
    inFlight = InFlight(core.revision, after: Int64(Random.word() >> 12))
    wakeTimer = WakeTimer(core)
    pauses = ServicePauses(core)
    tokens = TokenState(core)
    pendingSignIn = PendingSignInState(core.revision)
    check = MembershipCheck(core, reachability, hostView)
    uploads = UploadState(core.revision)
    pulls = PullState(core.revision, core.configuration.backend)
    live = LiveContacts(core.revision)
    cache = CacheFile(core, notices, pulls)
    problems = Problems(core)
  }
}

/// A part that uses the memory under the names that it has there.
protocol MemoryUser {
  var core: Core { get }
  var memory: Memory { get }
}

extension MemoryUser {
  var reachability: Reachability { memory.reachability }
  var hostView: HostView { memory.hostView }
  var news: News { memory.news }
  var notices: Notices { memory.notices }
  var inFlight: InFlight { memory.inFlight }
  var wakeTimer: WakeTimer { memory.wakeTimer }
  var pauses: ServicePauses { memory.pauses }
  var tokens: TokenState { memory.tokens }
  var pendingSignIn: PendingSignInState { memory.pendingSignIn }
  var check: MembershipCheck { memory.check }
  var uploads: UploadState { memory.uploads }
  var pulls: PullState { memory.pulls }
  var live: LiveContacts { memory.live }
  var cache: CacheFile { memory.cache }
  var problems: Problems { memory.problems }
}

/// What all parts with rules share: the memory, and the stores that decide nothing.
final class Shared {
  let core: Core
  let memory: Memory
  let sessions: SessionStore
  let lock: Lock
  let links: ItemLinks
  let ownRows: OwnRowCache
  let summaryCache: SummaryCache
  let syncRuns: SyncRunReporter
  let parking: Parking
  let presenter: Presenter
  let revocations: Revocation
  let reserve: Reserve

  init(_ memory: Memory) {
    core = memory.core
    self.memory = memory
    sessions = SessionStore(memory)
    lock = Lock(core, sessions)
    links = ItemLinks(core)
    ownRows = OwnRowCache(core, memory.cache)
    summaryCache = SummaryCache(core: core, cache: memory.cache)
    syncRuns = SyncRunReporter(core, memory.news)
    parking = Parking(core, memory.notices, syncRuns)
    presenter = Presenter(memory, sessions)
    revocations = Revocation(core, memory.inFlight)
    reserve = Reserve(core)
  }
}

/// A part with rules. It keeps the core itself: most of what a part does asks it.
class Part: MemoryUser {
  final let core: Core
  final let shared: Shared

  init(_ shared: Shared) {
    core = shared.core
    self.shared = shared
  }
}

extension Part {
  var memory: Memory { shared.memory }
  var sessions: SessionStore { shared.sessions }
  var lock: Lock { shared.lock }
  var links: ItemLinks { shared.links }
  var ownRows: OwnRowCache { shared.ownRows }
  var summaryCache: SummaryCache { shared.summaryCache }
  var syncRuns: SyncRunReporter { shared.syncRuns }
  var parking: Parking { shared.parking }
  var presenter: Presenter { shared.presenter }
  var revocations: Revocation { shared.revocations }
  var reserve: Reserve { shared.reserve }
}

/// The parts with rules, built once and bottom up: a part names those below it that it uses, so there are
/// no cycles, and none is handed upwards.
final class Parts: Part {
  let recovery: Recovery
  let refresh: Refresh
  let decider: Decider
  let orgSelection: OrgSelection
  let sessionStart: SessionStart
  let signIn: SignIn
  let lifecycle: AppLifecycle
  let token: SessionToken
  let memberships: MembershipUpdate
  let settlement: UploadSettlement
  let uploader: Uploader
  let intake: ItemIntake
  let report: ItemReport
  let items: ItemList
  let rowPuller: RowPuller
  let search: ContactSearch
  let summary: Summary
  let sync: SyncControl
  let scheduler: Scheduler
  let loop: HostLoop

  /// `hasRecovered`: a damaged main file was set aside when this one was opened.
  init(_ core: Core, hasRecovered: Bool) {
    let shared = Shared(Memory(core))
    recovery = Recovery(shared, hasRecovered: hasRecovered)
    refresh = Refresh(shared)
    decider = Decider(shared, recovery: recovery)

    // The session.
    orgSelection = OrgSelection(shared, decider: decider)
    sessionStart = SessionStart(shared, recovery: recovery)
    signIn = SignIn(shared, recovery: recovery, sessionStart: sessionStart, decider: decider)
    token = SessionToken(shared, refresh: refresh, decider: decider)
    memberships = MembershipUpdate(shared, refresh: refresh)

    // The queue.
    settlement = UploadSettlement(shared, refresh: refresh)
    uploader = Uploader(shared, settlement: settlement)
    lifecycle = AppLifecycle(
      shared, keyless: KeylessFiles(shared), refresh: refresh, uploader: uploader, decider: decider)
    intake = ItemIntake(shared, decider: decider)
    report = ItemReport(shared, refresh: refresh, decider: decider)
    items = ItemList(shared, report: report, decider: decider)

    // The cache.
    rowPuller = RowPuller(shared, refresh: refresh)
    search = ContactSearch(shared, refresh: refresh, decider: decider)
    summary = Summary(shared, refresh: refresh, decider: decider)

    // The host's loop.
    sync = SyncControl(shared, refresh: refresh, decider: decider)
    scheduler = Scheduler(
      shared, decider: decider, refresh: refresh, uploader: uploader, rowPuller: rowPuller,
      summary: summary)
    loop = HostLoop(
      shared, scheduler: scheduler, refresh: refresh, memberships: memberships, signIn: signIn,
      settlement: settlement, uploader: uploader, rowPuller: rowPuller, summary: summary,
      search: search, token: token, lifecycle: lifecycle, sync: sync, decider: decider)
    super.init(shared)
  }
}
