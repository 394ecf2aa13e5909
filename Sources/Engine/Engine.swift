public import Base
import Policy
import Store
import Supabase
public import Vault

/// The state machine: one per handle, called by one thread at a time.
///
/// What must last is in the files, and is read anew by every call when anybody has written there
/// since: other processes do. In memory is only what may be forgotten: which requests are under way,
/// and what was shown.
public final class Engine {
  let configuration: Configuration
  let clock: Clock
  let ring: KeyRing
  let holder: Holder
  var main: Database { didSet { changes &+= 1 } }
  var cacheFile: CacheFile?

  /// The readable session, or nil. Mirrors the row of its generation.
  var open: OpenSession? { didSet { changes &+= 1 } }
  /// Until the host says otherwise.
  var online = true { didSet { changes &+= 1 } }
  var flights: [Flight] = [] { didSet { changes &+= 1 } }
  var lastFlight: Int64 = 0
  /// Requests of `flights` that the host was not yet given.
  var outbox: [(flight: Int64, request: JSON)] = []
  /// Events and outbox before the poll that this call is.
  var handedOut: (events: EventQueue, outbox: [(flight: Int64, request: JSON)])?
  var guarding = GuardState() { didSet { changes &+= 1 } }
  /// The server has not confirmed this session since the process started, or came back online.
  var owesValidation = false { didSet { changes &+= 1 } }
  /// The server refused the access token: refresh, whatever the clock says.
  var tokenRefused = false { didSet { changes &+= 1 } }
  /// When the access token of this expiry ends by the monotonic clock, if it came in this process.
  var tokenEnds: (expiresMS: Int64, monotonicMS: Int64, bootID: String)? {
    didSet { changes &+= 1 }
  }
  /// The pauses of `Service`s that began in this process, by the monotonic clock.
  var pauses: [Pause] = [] { didSet { changes &+= 1 } }
  /// By when the last poll told the host to poll again, by the monotonic clock; nil: nothing was told
  /// yet that could turn out too late.
  var promisedMS: Int64?
  var exchange: Exchange? { didSet { changes &+= 1 } }
  /// How many items that were not refused yet travel together.
  var batchItems = BatchPolicy.maxItems
  var readBack: [UploadBatch] = [] { didSet { changes &+= 1 } }
  /// The last access token that the server refused: its session's generation, and when.
  var refusal: (generation: Int64, monotonicMS: Int64)?
  var pulls = PullState() { didSet { changes &+= 1 } }
  var liveRequests: [LiveRequest] = [] { didSet { changes &+= 1 } }
  var lastLive: Int64 = 0
  var stale = false
  var events = EventQueue() { didSet { changes &+= 1 } }
  var shown = Shown() { didSet { changes &+= 1 } }
  var contactIndex: ContactIndex?
  /// Damaged files were set aside when the folder was opened.
  public internal(set) var recovered: Bool
  /// A file that was set aside still waits for the device key.
  var owesSalvage = false
  /// Counts the changes of what it depends on when there is something to do, beside the file and
  /// the clock.
  var changes: UInt = 0
  var wakes: Wakes?

  /// Opens the files. `keyStore` nil: the built-in file store.
  public init(_ configuration: Configuration, keyStore: (any KeyStore)?) throws(Failure) {
    try Vault.start()
    self.configuration = configuration
    clock = Clock(configuration.clock)
    try Files.makeFolder(configuration.dataFolder)
    ring = KeyRing(keyStore ?? FileKeyStore(folder: configuration.dataFolder + "/keys"))
    holder = Holder(bootID: clock.now().bootID, nonce: Random.word())
    (main, recovered) = try Files.openOrReplaceMain(
      in: configuration.dataFolder, at: clock.now())
    do throws(Failure) {
      owesSalvage = try meta.text(.salvage) != nil
      try reclaimLeases(at: clock.now())
      try queue.releaseKinds()
    } catch  where error.code == .storageDamaged {
      guard try recover() else { throw error }
    }
  }

  /// Gives back what this handle held. Called once, before the handle is dropped.
  public func close() {
    _ = try? queue.reclaim(from: holder.bytes)
    _ = try? leases.release(Engine.refreshLease, holder: holder.bytes)
    open = nil
    contactIndex = nil
    ring.forget()
  }

  // MARK: Tables

  var sessions: SessionTable { SessionTable(main) }
  var meta: MetaTable { MetaTable(main) }
  var queue: QueueTable { QueueTable(main) }
  var dependencies: DependencyTable { DependencyTable(main) }
  var syncRuns: SyncRunTable { SyncRunTable(main) }
  var notices: DurableEventTable { DurableEventTable(main) }
  var leases: LeaseTable { LeaseTable(main) }
  var backoffs: BackoffTable { BackoffTable(main) }
  var signIns: SignInTable { SignInTable(main) }
  var revocations: RevocationTable { RevocationTable(main) }

  // MARK: Time

  /// The server's time, as learned from its `Date` headers.
  func serverMS(_ now: Instant) throws(Failure) -> Int64 {
    now.wallMS + (try meta.int(.clockOffset) ?? 0)
  }

  func learnServerTime(_ dateMS: Int64?, _ now: Instant) throws(Failure) {
    guard let dateMS else { return }
    // The header counts whole seconds: the middle of the second is the best guess.
    let offset = dateMS + 500 - now.wallMS
    let known = try meta.int(.clockOffset)
    if abs(offset - (known ?? 0)) > 2000 || known == nil {
      try meta.set(.clockOffset, .int(offset))
    }
  }

  public func setClock(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["now_ms", "monotonic_ms", "boot_id"])
    guard clock.isManual else {
      throw Failure(.clockNotManual, "the handle was not opened with \"clock\":\"manual\"")
    }
    let before = clock.now()
    let wall = try fields.integer("now_ms", in: 0...Fields.safe.upperBound)
    let passed = max(0, wall - before.wallMS)
    clock.set(
      Instant(
        wallMS: wall,
        monotonicMS: try fields.integer(
          ifPresent: "monotonic_ms", in: 0...Fields.safe.upperBound) ?? before.monotonicMS + passed,
        bootID: try fields.string(ifPresent: "boot_id", maximum: 64) ?? before.bootID))
    return [:]
  }

  // MARK: Keys

  /// The keys, or the failure that a data call answers with.
  func keys() throws(Failure) -> KeyRing.Keys {
    switch try ring.state(for: main) {
    case .ready:
      guard let keys = ring.keys else { throw .defect("the key ring is empty") }
      return keys
    case .locked: throw Failure(.keyStoreLocked, "the device was not unlocked yet")
    case .failed: throw Failure(.keyStoreFailed, "the key store did not answer")
    case .lost: throw Failure(.keyStoreKeyLost, "the device key is gone; sign in again")
    }
  }

  func userTag(_ user: UUID, _ keys: KeyRing.Keys) -> [UInt8] {
    keys.lookup.tag("user", user.bytes)
  }

  func orgTag(_ org: UUID, _ keys: KeyRing.Keys) -> [UInt8] { keys.lookup.tag("org", org.bytes) }
}
