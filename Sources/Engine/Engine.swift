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
/// `Parts` has the parts with the rules.
///
/// What another module calls here is `@export(interface)`: without it, Embedded Swift compiles the body, and
/// most of this module with it, once more in that module.
public final class Engine {
  private let core: Core
  private let parts: Parts

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
    let keyRing = KeyRing(
      keyStore ?? FileKeyStore(folder: folder + "/keys"),
      deadlineMS: configuration.limits.guardTimeoutMS, clock, isOfHost: keyStore != nil)
    let opened = try Engine.openMain(in: folder, at: clock.now())
    core = Core(configuration, clock, keyRing, opened.database)
    parts = Parts(core, hasRecovered: opened.replaced)
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
        return try parts.uploader.reclaimVoidLeases(core.clock.now())
      } catch {
        switch error.code {
        case .storageDamaged:
          tries += 1
          guard tries <= Engine.recoveries, try parts.recovery.recover() else { throw error }
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

  /// A call begins to read; see `CallReads`.
  @export(interface) public func beginReads(mayRunAgain: Bool = true, isAlone: Bool = false) {
    core.reads.begin(mayRunAgain: mayRunAgain, isAlone: isAlone)
  }

  /// The call has read all that it needs. It holds no transaction any more.
  @export(interface) public func endReads() { core.reads.end() }

  /// Another process has committed between two reads of the call, which has changed nothing: run it again.
  @export(interface) public var mustRunAgain: Bool { core.reads.mustRunAgain }

  /// Whether a damaged main file was set aside when the current one was opened.
  @export(interface) public var recovered: Bool { parts.recovery.hasRecovered }

  /// The key store in use, by its name in the API.
  @export(interface) public var keyStoreName: StaticCString {
    core.configuration.usesKeyFiles ? "file" : "host"
  }

  /// The text of the prompt with which the user releases the key behind presence.
  @export(interface) public var unlockPrompt: JSON { core.text(.unlockPrompt) }

  /// Prepare for a call. While that fails, no host is urged to ask: it would in vain.
  @export(interface) public func begin() throws(Failure) {
    parts.loop.canAsk = false
    parts.loop.begin()
    try parts.recovery.followFiles()
    parts.sessions.followNeighbours()
    // A call does not fail because an erasure is owed, or a sign-in failed before.
    do throws(Failure) { try parts.sessions.keys.erasures.eraseOwed() } catch {}
    do throws(Failure) { try parts.sessions.keepUsable() } catch {}
    try parts.sessions.confirmVault()
    parts.loop.canAsk = true
    do throws(Failure) { try parts.loop.noteSilence() } catch {}
  }

  /// Replace a damaged file; returns false when the failure had another cause.
  @export(interface) public func recover() throws(Failure) -> Bool { try parts.recovery.recover() }
  /// The disk is full: give the call the room that was kept. Returns false when there is none.
  @export(interface) public func releaseReserve() -> Bool { parts.reserve.release() }

  /// Building the reply failed; give the same again.
  @export(interface) public func replyWasLost() { parts.loop.replyWasLost() }
  /// The call runs again, because another process has written meanwhile: what it did in memory is undone.
  @export(interface) public func willRunAgain() { parts.loop.willRunAgain() }

  // MARK: Other handles on the folder

  /// A call is over. Returns whether it has changed the data: other handles are told then.
  @export(interface) public func takeChange() -> Bool {
    core.neighbours.takeChange(core.database)
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
      if awaited & bit != 0, (try? parts.loop.wants(what)) ?? false { bits |= bit }
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
    try parts.sessionStart.begin(reply)
    try parts.decider.decide(.navigate)
    return [:]
  }

  @export(interface) public func signInBegin(_ request: JSON) throws(Failure) -> JSON {
    try parts.signIn.begin(request)
  }

  @export(interface) public func signInComplete(_ request: JSON) throws(Failure) -> JSON {
    try parts.signIn.complete(request)
  }

  @export(interface) public func signInCancel(_ request: JSON) throws(Failure) -> JSON {
    try parts.signIn.cancel(request)
  }

  @export(interface) public func sessionResume(_ request: JSON) throws(Failure) -> JSON {
    parts.loop.isOnScreen = true
    return try parts.lifecycle.resume(request)
  }

  @export(interface) public func sessionUnlock(_ request: JSON) throws(Failure) -> JSON {
    try parts.lifecycle.unlock(request)
  }

  @export(interface) public func sessionLock(_ request: JSON) throws(Failure) -> JSON {
    try parts.lifecycle.lock(request)
  }

  @export(interface) public func sessionBackground(_ request: JSON) throws(Failure) -> JSON {
    parts.loop.isOnScreen = false
    return try parts.lifecycle.background(request)
  }

  @export(interface) public func sessionForeground(_ request: JSON) throws(Failure) -> JSON {
    parts.loop.isOnScreen = true
    return try parts.lifecycle.foreground(request)
  }

  @export(interface) public func sessionStatus(_ request: JSON) throws(Failure) -> JSON {
    try parts.lifecycle.status(request)
  }

  @export(interface) public func sessionToken(_ request: JSON) throws(Failure) -> JSON {
    try parts.token.get(request)
  }

  @export(interface) public func sessionLogout(_ request: JSON) throws(Failure) -> JSON {
    try parts.lifecycle.logOut(request)
  }

  @export(interface) public func orgList(_ request: JSON) throws(Failure) -> JSON {
    try parts.orgSelection.list(request)
  }

  @export(interface) public func orgSelect(_ request: JSON) throws(Failure) -> JSON {
    try parts.orgSelection.select(request)
  }

  @export(interface) public func routeCheck(_ request: JSON) throws(Failure) -> JSON {
    try parts.orgSelection.checkRoute(request)
  }

  @export(interface) public func queueAdd(_ request: JSON) throws(Failure) -> JSON {
    try parts.intake.add(request)
  }

  @export(interface) public func queueList(_ request: JSON) throws(Failure) -> JSON {
    try parts.report.list(request)
  }

  @export(interface) public func queueGet(_ request: JSON) throws(Failure) -> JSON {
    try parts.report.get(request)
  }

  @export(interface) public func queueEdit(_ request: JSON) throws(Failure) -> JSON {
    try parts.intake.edit(request)
  }

  @export(interface) public func queueCancel(_ request: JSON) throws(Failure) -> JSON {
    try parts.intake.cancel(request)
  }

  @export(interface) public func queueRetry(_ request: JSON) throws(Failure) -> JSON {
    try parts.intake.retry(request)
  }

  @export(interface) public func queueExport(_ request: JSON) throws(Failure) -> JSON {
    try parts.report.export(request)
  }

  @export(interface) public func queueExplain(_ request: JSON) throws(Failure) -> JSON {
    try parts.report.explain(request)
  }

  @export(interface) public func itemList(_ request: JSON) throws(Failure) -> JSON {
    try parts.items.list(request)
  }

  @export(interface) public func contactSearch(_ request: JSON) throws(Failure) -> JSON {
    try parts.search.search(request)
  }

  @export(interface) public func contactGet(_ request: JSON) throws(Failure) -> JSON {
    try parts.search.get(request)
  }

  @export(interface) public func summaryGet(_ request: JSON) throws(Failure) -> JSON {
    try parts.summary.get(request)
  }

  @export(interface) public func setNetwork(_ request: JSON) throws(Failure) -> JSON {
    let reply = try parts.lifecycle.setNetwork(request)
    try parts.signIn.followNetwork()
    return reply
  }

  @export(interface) public func syncNow(_ request: JSON) throws(Failure) -> JSON {
    try parts.sync.start(request)
  }

  @export(interface) public func syncStatus(_ request: JSON) throws(Failure) -> JSON {
    try parts.sync.status(request)
  }

  @export(interface) public func complete(_ request: JSON) throws(Failure) -> JSON {
    try parts.loop.complete()
  }

  /// Take a response, in memory alone. Fails only for a malformed request.
  @export(interface) public func keepResponse(_ request: JSON) throws(Failure) {
    try parts.loop.keepResponse(request)
  }

  // MARK: What the host gets

  /// The screen to begin with, from what is stored; null where nobody is at the screen, and before a manual
  /// clock is set.
  @export(interface) public func firstScreen() throws(Failure) -> JSON {
    guard core.configuration.role == .app, !core.clock.isManual else { return .null }
    _ = try parts.lifecycle.resume([:])
    return parts.news.takeScreen() ?? .null
  }

  /// The next thing for this reader; nil: there is nothing now.
  @export(interface) public func next(_ what: Wanted) throws(Failure) -> JSON? {
    let found = try parts.loop.next(what)
    parts.reserve.followRoom()
    return found
  }

  /// There is nothing: in how many milliseconds the reader should ask again; nil: after a call or a response.
  @export(interface) public func wakeIn(_ what: Wanted) throws(Failure) -> Int64? {
    try parts.loop.promise(what)
  }

  /// The longest sleep of a thread that waits.
  @export(interface) public var longestWaitMS: Int64 { parts.loop.longestWaitMS }
}
