import Base
import Policy
import Store
import Supabase
import Vault

/// What the engine keeps in memory beside the files, built once. It may be lost: `SessionStore.reset`
/// drops what belongs to a session that ends.
final class Parts: Rules {
  let core: Core
  let reachability = Reachability()
  let hostView = HostView()
  let news = News()
  let notices: Notices
  let inFlight = InFlight(after: Int64(Random.word() >> 12))
  let tokens: TokenState
  let pendingSignIn = PendingSignInState()
  let check: MembershipCheck
  let uploads = UploadState()
  let pulls: PullState
  let live = LiveContacts()
  let cache: CacheFile
  let problems: Problems
  let sessionKeys: SessionKeys
  var mirror = SessionStore.Mirror()
  var recoveryState: Recovery.State
  let reserve: Reserve

  /// `hasRecovered`: a damaged main file was set aside when this one was opened.
  init(_ core: Core, hasRecovered: Bool) {
    self.core = core
    notices = Notices(core)
    tokens = TokenState(core)
    check = MembershipCheck(core, reachability, hostView)
    pulls = PullState(core.configuration.backend)
    cache = CacheFile(core, notices, pulls)
    problems = Problems(core)
    sessionKeys = SessionKeys(core)
    recoveryState = Recovery.State(hasRecovered: hasRecovered)
    reserve = Reserve(core)
  }

  var parts: Parts { self }
}

/// Rules that read and change the parts, and keep nothing themselves: they are made where they are used.
/// They use the parts and each other under the names below.
protocol Rules {
  var parts: Parts { get }
}

extension Rules {
  var core: Core { parts.core }
  var reachability: Reachability { parts.reachability }
  var hostView: HostView { parts.hostView }
  var news: News { parts.news }
  var notices: Notices { parts.notices }
  var inFlight: InFlight { parts.inFlight }
  var tokens: TokenState { parts.tokens }
  var pendingSignIn: PendingSignInState { parts.pendingSignIn }
  var check: MembershipCheck { parts.check }
  var uploads: UploadState { parts.uploads }
  var pulls: PullState { parts.pulls }
  var live: LiveContacts { parts.live }
  var cache: CacheFile { parts.cache }
  var problems: Problems { parts.problems }
  var reserve: Reserve { parts.reserve }
}

// MARK: The rules

extension Rules {
  // Files and decisions.
  var recovery: Recovery { Recovery(parts: parts) }
  var keyless: KeylessFiles { KeylessFiles(parts: parts) }
  var decider: Decider { Decider(parts: parts) }
  var presenter: Presenter { Presenter(parts: parts) }

  // The session.
  var sessions: SessionStore { SessionStore(parts: parts) }
  var sessionStart: SessionStart { SessionStart(parts: parts) }
  var lifecycle: AppLifecycle { AppLifecycle(parts: parts) }
  var lock: Lock { Lock(parts: parts) }
  var signIn: SignIn { SignIn(parts: parts) }
  var refresh: Refresh { Refresh(parts: parts) }
  var revocations: Revocation { Revocation(parts: parts) }
  var token: SessionToken { SessionToken(parts: parts) }
  var serviceTime: ServiceTime { ServiceTime(parts: parts) }
  var memberships: MembershipUpdate { MembershipUpdate(parts: parts) }
  var orgSelection: OrgSelection { OrgSelection(parts: parts) }

  // The queue.
  var intake: ItemIntake { ItemIntake(parts: parts) }
  var links: ItemLinks { ItemLinks(parts: parts) }
  var report: ItemReport { ItemReport(parts: parts) }
  var uploader: Uploader { Uploader(parts: parts) }
  var settlement: UploadSettlement { UploadSettlement(parts: parts) }
  var syncRuns: SyncRunReporter { SyncRunReporter(parts: parts) }

  // The cache.
  var items: ItemList { ItemList(parts: parts) }
  var search: ContactSearch { ContactSearch(parts: parts) }
  var summary: Summary { Summary(parts: parts) }
  var summaryCache: SummaryCache { SummaryCache(parts: parts) }
  var ownRows: OwnRowCache { OwnRowCache(parts: parts) }
  var rowPuller: RowPuller { RowPuller(parts: parts) }

  // The host's loop.
  var pauses: ServicePauses { ServicePauses(core: core) }
  var scheduler: Scheduler { Scheduler(parts: parts) }
  var sync: SyncControl { SyncControl(parts: parts) }
}
