import Base
import Policy
import Store
import Vault

/// What every part needs: configuration, clock, keys, the main database with its tables, and texts.
final class Core {
  let configuration: Configuration
  let clock: Clock
  let keyRing: KeyRing
  /// Names this handle in leases.
  /// Made when it is first used: to ask the system when the process began takes longer than a statement.
  private(set) lazy var holder = Holder(bootID: clock.now().bootID, nonce: Random.word())
  let neighbours: Neighbours
  /// What the running call reads, in all files.
  let reads = CallReads()
  private(set) var database: Database {
    didSet {
      database.call = reads
      steadyOffset = nil
      ownerOfKnownLinks = nil
    }
  }
  /// Whose items were seen to wait only for items that are in the queue, since the file was opened.
  var ownerOfKnownLinks: [UInt8]?
  /// The offset of the server's clock that was last read.
  private var lastOffsetMS: Int64 = 0
  /// The boot for which it is known how steady time differs from the monotonic clock, and by how much.
  private var steadyOffset: (bootID: String, ms: Int64)?

  init(
    _ configuration: Configuration, _ clock: Clock, _ keyRing: KeyRing, _ database: Database
  ) {
    self.configuration = configuration
    neighbours = Neighbours(folder: configuration.dataFolder)
    self.clock = clock
    self.keyRing = keyRing
    self.database = database
    database.call = reads
  }

  /// Use another connection or another file from now on. The caller closes the old one.
  func use(_ database: Database) {
    database.follow(self.database)
    self.database = database
  }

  // MARK: Tables

  var sessionTable: SessionTable { SessionTable(database) }
  var meta: MetaTable { MetaTable(database) }
  var queue: QueueTable { QueueTable(database) }
  var queueBlocks: QueueBlockTable { QueueBlockTable(database) }
  var dependencies: DependencyTable { DependencyTable(database) }
  var storedItems: StoredItemTable { StoredItemTable(database) }
  var syncRuns: SyncRunTable { SyncRunTable(database) }
  var notices: NoticeTable { NoticeTable(database) }
  var leases: LeaseTable { LeaseTable(database) }
  var pauses: PauseTable { PauseTable(database) }
  var signIns: SignInTable { SignInTable(database) }
  var revocations: RevocationTable { RevocationTable(database) }

  /// Remove items that are proved to be stored from the queue, and remember that they were.
  func removeStored(_ items: [[UInt8]], _ now: Instant) throws(Failure) {
    try queue.removeStored(items)
    try remember(items, .stored, now)
  }

  /// Remove a cancelled item from the queue, and remember that it was.
  func removeCancelled(
    _ item: [UInt8], _ now: Instant, mayBeStored: Bool = false
  ) throws(Failure) {
    try queue.remove(item)
    try remember([item], mayBeStored ? .unknownOutcome : .cancelled, now)
  }

  private func remember(
    _ items: [[UInt8]], _ fate: StoredItemTable.Fate, _ now: Instant
  ) throws(Failure) {
    guard !items.isEmpty else { return }
    let limits = configuration.limits
    let time = try serverMS(now)
    // A server's answer tells the time, too. A cancel comes from a host whose clock may be wrong, and
    // drops nothing because of its age.
    let since = fate == .stored ? time - limits.storedItemsMS : Int64.min
    try storedItems.add(items, fate, now: time, limit: limits.storedItems, since: since)
  }

  /// What became of an item that is not queued, as far as the library remembers.
  func fate(of item: [UInt8]) throws(Failure) -> StoredItemTable.Record? {
    let since = try serverMS(clock.now()) - configuration.limits.storedItemsMS
    return try storedItems.find(item, since: since)
  }

  // MARK: Time

  /// The present steady time, which stored deadlines are compared with. Until this boot has stored
  /// one, it is the device's time. Changes nothing in the file.
  func steady(_ now: Instant) throws(Failure) -> SteadyTime {
    if let steadyOffset, steadyOffset.bootID == now.bootID {
      return SteadyTime(ms: now.monotonicMS &+ steadyOffset.ms)
    }
    guard !now.bootID.isEmpty, try meta.word(.steadyBoot) == Core.number(ofBoot: now.bootID),
      let offset = try meta.int(.steadyOffset)
    else { return SteadyTime(ms: now.wallMS) }
    // What a transaction has just stored may be rolled back.
    if database.version != nil { steadyOffset = (now.bootID, offset) }
    return SteadyTime(ms: now.monotonicMS &+ offset)
  }

  /// The present steady time, from which a time to be stored is computed. The first one in a boot
  /// settles how steady time goes on in that boot, for all processes. Where the boot has no id, steady
  /// time is the device's.
  func steadyToStore(_ now: Instant) throws(Failure) -> SteadyTime {
    if steadyOffset?.bootID == now.bootID || now.bootID.isEmpty { return try steady(now) }
    return try database.transaction { () throws(Failure) in
      let time = try steady(now)
      let boot = Core.number(ofBoot: now.bootID)
      if try meta.word(.steadyBoot) != boot {
        try meta.set(.steadyBoot, .int(boot))
        try meta.set(.steadyOffset, .int(now.wallMS - now.monotonicMS))
      }
      return time
    }
  }

  /// A pause that begins now.
  func pause(_ lengthMS: Int64, _ now: Instant) throws(Failure) -> Pause {
    let since = try steadyToStore(now)
    return Pause(since: since, until: since + lengthMS)
  }

  private static func number(ofBoot id: String) -> Int64 { Int64(bitPattern: Holder.hash(id)) }

  /// A steady time as the device's clock will show it, for the host.
  func wallMS(_ time: SteadyTime, _ now: Instant) throws(Failure) -> Int64 {
    now.wallMS &+ (time - (try steady(now)))
  }

  /// The server's time, as `ServiceTime` has learned it.
  func serverMS(_ now: Instant) throws(Failure) -> Int64 {
    lastOffsetMS = try meta.int(.clockOffset) ?? 0
    return now.wallMS + lastOffsetMS
  }

  /// The same with the offset that was last read: for a response, which is read before the call looks at the
  /// file. A read would hide from the call that another process has written.
  func lastServerMS(_ now: Instant) -> Int64 { now.wallMS + lastOffsetMS }

  /// Set the manual clock of a test.
  func setClock(_ request: JSON) throws(Failure) -> JSON {
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

  /// The state of the device key; loads or makes it at first use.
  func keyState() throws(Failure) -> Situation.Keys { try keyRing.state(for: database) }

  /// Return the keys, or throw the failure that a data call answers with. Loads the device key at
  /// first use.
  func keys() throws(Failure) -> KeyRing.Keys {
    try require(try keyState())
    guard let keys = keyRing.keys else { throw .defect("the key ring is empty") }
    return keys
  }

  /// The keys of what a sign-in needs until it has succeeded. If those of the files are lost, they are in memory only:
  /// nothing is set aside before the server has taken a proof.
  func signInKeys() throws(Failure) -> KeyRing.Keys {
    try keyState() == .lost ? try keyRing.provisional() : try keys()
  }

  func require(_ state: Situation.Keys) throws(Failure) {
    switch state {
    case .ready: return
    case .locked: throw keyFailure(.locked)
    case .failed: throw keyFailure(.failed, keyRing.missingName == nil ? nil : lostKey)
    case .lost:
      let trouble = lostKey
      throw Failure(.keyStoreKeyLost, trouble.text(Core.keyIsLost), detail: trouble.detail)
    }
  }

  static var keyIsLost: StaticCString { "the key store no longer has the key of these files" }

  /// What the key store answered when it had no key for the files.
  var lostKey: KeyTrouble {
    let name = keyRing.missingName ?? keyRing.deviceName
    if let last = keyRing.store.trouble, last.name.kind == name.kind, last.answer.isGone {
      return last
    }
    // A key that was loaded last is another one than that of the files.
    return KeyTrouble(.load, name, .otherKey)
  }

  /// The failure of a step whose key the store did not load or save. It tells what the store answered
  /// last, unless that is `known`.
  func keyFailure(_ refusal: KeyRefusal, _ known: KeyTrouble? = nil) -> Failure {
    let trouble = known ?? keyRing.store.trouble
    let isLocked = refusal == .locked
    let what: StaticCString = isLocked ? "the device was not unlocked yet" : "the key store failed"
    return Failure(
      isLocked ? .keyStoreLocked : .keyStoreFailed, trouble?.text(what) ?? what.string,
      detail: trouble?.detail)
  }

  // MARK: Texts

  /// The text of a code in the configured language.
  func text(_ code: MessageCode) -> JSON {
    .string(Messages.text(code, configuration.language))
  }

  /// The same for a stored code; empty for one that this version does not know.
  func text(ofCode code: String) -> JSON {
    guard let known = MessageCode(rawValue: code) else { return .string("") }
    return text(known)
  }

  /// A message of the API: code and text.
  func message(_ code: MessageCode) -> JSON {
    ["code": .string(code.rawValue), "text": text(code)]
  }
}
