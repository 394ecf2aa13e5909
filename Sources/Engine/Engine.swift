public import Base
import Policy
import Store
import Supabase
public import Vault

/// The state machine: one per handle, called by one thread at a time.
///
/// What must last is in the files; a call reads it again if another process has written there. Memory
/// (`Parts`) holds only what may be lost: requests in flight, what the host shows, and the readable
/// session. `run` names the rules of every operation.
///
/// What another module calls here is `@export(interface)`: without it, Embedded Swift compiles the body, and
/// most of this module with it, once more in that module.
public final class Engine {
  private let core: Core
  private let parts: Parts
  private let loop: HostLoop

  /// Opens the files. `keyStore` nil: the built-in file store, if the configuration asks for it.
  @export(interface) public init(_ configuration: Configuration, keyStore: (any KeyStore)?)
    throws(Failure)
  {
    if configuration.isDevelopment { Log.toStandardError() }
    try Vault.start()
    try configuration.check(hasKeyStore: keyStore != nil)
    let clock = Clock(configuration.clock)
    try DataFolder.make(configuration.dataFolder)
    try configuration.resolveDataFolder()
    let folder = configuration.dataFolder
    // Before anything is changed. Afterwards nobody else can put a file there.
    try PrivateFile.check(folder: folder, hasKeys: configuration.usesKeyFiles)
    let keyRing = KeyRing(
      keyStore ?? FileKeyStore(folder: folder + "/keys"),
      deadlineMS: configuration.limits.guardTimeoutMS, clock, isOfHost: keyStore != nil)
    let opened = try Engine.openMain(in: folder, at: clock.now())
    core = Core(configuration, clock, keyRing, opened.database)
    parts = Parts(core, hasRecovered: opened.replaced)
    loop = HostLoop(parts)
    try start()
  }

  /// A full disk is no reason not to open: SQLite's index of the log takes some of the reserve.
  private static func openMain(
    in folder: String, at now: Instant
  ) throws(Failure) -> (database: Database, replaced: Bool) {
    do throws(Failure) {
      return try DataFolder.openMain(in: folder, at: now)
    } catch  where error.code == .storageFull && Reserve.giveForOpening(in: folder) {
      return try openMain(in: folder, at: now)
    }
  }

  /// Continue what earlier processes left unfinished.
  private func start() throws(Failure) {
    // A full disk is no reason not to open: what is stored can be read and sent.
    try? parts.reserve.make()
    core.reads.begin(mayRunAgain: false)
    defer { core.reads.end() }
    var tries = 0
    while true {
      do throws(Failure) {
        try KeyStoreChange.refuse(core.configuration, core.database)
        try ProjectChange.refuse(core.configuration, core.database)
        try parts.recovery.findUnfinished()
        return try parts.uploader.reclaimLostLeases(core.clock.now(), late: nil)
      } catch {
        switch error.code {
        case .storageDamaged:
          tries += 1
          guard tries <= Engine.recoveries, try parts.recovery.recover() else { throw error }
        case .storageFull:
          // What is left is reclaimed later.
          guard !core.database.isTight, parts.reserve.release() else { return }
        default: throw error
        }
      }
    }
  }

  /// How often a call may recover: it makes the file sound, and sets it aside when that was not enough.
  private static var recoveries: Int { 2 }

  /// Give back what this handle holds. Called once, before the handle is dropped.
  @export(interface) public func close() {
    core.reads.begin(mayRunAgain: false)
    defer { core.reads.end() }
    _ = try? parts.uploader.releaseLeases()
    _ = try? parts.refresh.releaseLease()
    parts.reserve.keep()
    parts.sessions.reset(.file)
  }

  /// A fork has copied the handle into this process, where nobody uses it.
  @export(interface) public func disown() {
    core.database.closeCopy()
    parts.cache.closeCopy()
  }

  // MARK: Calls

  /// How often a call runs again because others write. From the second time on, it lets nobody else write.
  private static var mostRuns: Int { 4 }

  /// Make a call. `locks`: it is the user's lock, which holds also where no call can begin.
  @export(interface) public func call(
    mayUseReserve: Bool, locks: Bool = false, _ body: () throws(Failure) -> JSON
  ) throws(Failure) -> JSON {
    var hasBegun = false
    do throws(Failure) {
      return try carryOut(mayUseReserve) { () throws(Failure) in
        hasBegun = true
        return try body()
      }
    } catch {
      if locks, !hasBegun { parts.lock.holdWithoutFile(owes: true) }
      throw error
    }
  }

  /// The call runs again on what another process has committed meanwhile; on a file that was made sound, or on
  /// a new one with the data that could be recovered; or, if it may use the reserve, in the room that was kept
  /// for it.
  private func carryOut(
    _ mayUseReserve: Bool, _ body: () throws(Failure) -> JSON
  ) throws(Failure) -> JSON {
    var (runs, recoveries, mayRelease) = (0, 0, mayUseReserve)
    while true {
      core.reads.begin(mayRunAgain: true, isAlone: runs > 1)
      defer { core.reads.end() }
      do throws(Failure) {
        try begin()
        let reply = try body()
        if core.reads.mustRunAgain { throw Failure(.storageBusy, "another process is writing") }
        return reply
      } catch {
        let isOutdated = core.reads.mustRunAgain
        core.reads.begin(mayRunAgain: false)
        switch error.code {
        case _ where isOutdated && runs < Engine.mostRuns:
          runs += 1
          // What it did in memory is undone.
          parts.inFlight.restoreFinished()
        case .storageDamaged:
          recoveries += 1
          guard recoveries <= Engine.recoveries, try parts.recovery.recover() else { throw error }
        case .storageFull where mayRelease:
          mayRelease = false
          guard parts.reserve.release() else { throw error }
        default: throw error
        }
      }
    }
  }

  /// Whether a damaged main file was set aside when the current one was opened.
  @export(interface) public var recovered: Bool { parts.recovery.hasRecovered }

  /// The key store in use, by its name in the API.
  @export(interface) public var keyStoreName: StaticCString {
    core.configuration.usesKeyFiles ? "file" : "host"
  }

  /// The text of the prompt with which the user releases the key behind presence.
  @export(interface) public var unlockPrompt: JSON { core.text(.unlockPrompt) }

  /// Prepare for a call. While that fails, no host is urged to ask: it would in vain.
  private func begin() throws(Failure) {
    loop.canAsk = false
    loop.begin()
    try parts.recovery.followFiles()
    parts.sessions.followNeighbours()
    // A call does not fail because an erasure is owed, or a sign-in failed before.
    do throws(Failure) { try parts.lock.makeUp() } catch {}
    do throws(Failure) { try parts.sessions.keys.erasures.eraseOwed() } catch {}
    do throws(Failure) { try parts.sessions.keepUsable() } catch {}
    try parts.sessions.confirmVault()
    loop.canAsk = true
    do throws(Failure) { try loop.noteSilence() } catch {}
  }

  /// The reply of the call is made: what `next` has found is the host's. Until then, it is given again.
  @export(interface) public func replyWasMade() { loop.give() }

  // MARK: Other handles on the folder

  /// A call is over. Returns whether it has changed the data: other handles are told then.
  @export(interface) public func takeChange() -> Bool {
    core.neighbours.takeChange(core.database)
  }

  /// Another handle has written since the last look for work.
  @export(interface) public var urgesLook: Bool { core.neighbours.urgesLook }

  /// The session is readable.
  @export(interface) public var isOpen: Bool { parts.sessions.session != nil }

  /// The readers that have asked for a descriptor or waited. Nobody else sees what a call raises, and to find
  /// it out costs as much as a small call.
  private var awaited: [Wanted] = []

  /// A reader begins to wait. Returns whether it is new.
  @export(interface) public func await(_ what: Wanted) -> Bool {
    if awaited.contains(what) { return false }
    awaited.append(what)
    return true
  }

  @export(interface) public var isAwaited: Bool { !awaited.isEmpty }

  /// The awaited readers that should ask now, as bits. If the storage cannot be read now, the next call tells.
  @export(interface) public func wanting() -> UInt32 {
    core.reads.begin(mayRunAgain: false)
    defer { core.reads.end() }
    var bits: UInt32 = 0
    for what in awaited where (try? loop.wants(what)) ?? false {
      bits |= 1 << UInt32(what.rawValue)
    }
    return bits
  }

  // MARK: Operations

  /// Carry out an operation: each is a function of the rules that it is about.
  @export(interface)
  public func run(_ operation: Operation, _ request: JSON) throws(Failure) -> JSON {
    switch operation {
    case .clockSet: return try core.setClock(request)
    case .sessionAdopt: return try parts.sessionStart.adopt(request)
    case .signInBegin: return try parts.signIn.begin(request)
    case .signInComplete: return try parts.signIn.complete(request)
    case .signInCancel: return try parts.signIn.cancel(request)
    case .sessionResume:
      parts.hostView.isOnScreen = true
      return try parts.lifecycle.resume(request)
    case .sessionUnlock: return try parts.lifecycle.unlock(request)
    case .sessionLock: return try parts.lifecycle.lock(request)
    case .sessionBackground: return try parts.lifecycle.background(request)
    case .sessionForeground:
      parts.hostView.isOnScreen = true
      return try parts.lifecycle.foreground(request)
    case .sessionStatus: return try parts.lifecycle.status(request)
    case .sessionToken: return try parts.token.get(request)
    case .sessionLogout: return try parts.lifecycle.logOut(request)
    case .orgList: return try parts.orgSelection.list(request)
    case .orgSelect: return try parts.orgSelection.select(request)
    case .routeCheck: return try parts.orgSelection.checkRoute(request)
    case .queueAdd: return try parts.intake.add(request)
    case .queueList: return try parts.report.list(request)
    case .queueGet: return try parts.report.get(request)
    case .queueEdit: return try parts.intake.edit(request)
    case .queueCancel: return try parts.intake.cancel(request)
    case .queueRetry: return try parts.intake.retry(request)
    case .queueExport: return try parts.report.export(request)
    case .queueExplain: return try parts.report.explain(request)
    case .itemList: return try parts.items.list(request)
    case .contactSearch: return try parts.search.search(request)
    case .contactGet: return try parts.search.get(request)
    case .summaryGet: return try parts.summary.get(request)
    case .networkReport: return try parts.lifecycle.setNetwork(request)
    case .syncNow: return try parts.sync.start(request)
    case .syncStatus: return try parts.sync.status(request)
    case .complete: return try loop.complete()
    }
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
    return try loop.firstScreen() ?? .null
  }

  /// The next thing for this reader; nil: there is nothing now.
  @export(interface) public func next(_ what: Wanted) throws(Failure) -> JSON? {
    let found = try loop.next(what)
    parts.reserve.followRoom()
    return found
  }

  /// There is nothing: in how many milliseconds the reader should ask again; nil: after a call or a response.
  @export(interface) public func wakeIn(_ what: Wanted) throws(Failure) -> Int64? {
    try loop.promise(what)
  }

  /// The longest sleep of a thread that waits.
  @export(interface) public var longestWaitMS: Int64 { loop.longestWaitMS }
}
