import Base
import Policy
import Store
import Vault

/// The device key and the keys derived from it, loaded from the key store at first use.
///
/// That the store has no key for the files is not proof that it is lost: some stores say "not found" before
/// the device's first unlock, or while they are restored. So that counts as no answer for a while, then the
/// sign-in is offered, and the store is asked again all the time. Only a sign-in makes another key, and
/// saves it under a name of its own (`Recovery.beginAnew`).
final class KeyRing {
  struct Keys {
    let device: NamedKey
    let lookup: Key
    let notices: Key
    let signIns: Key
    let revocations: Key
    let queues: Key
    let lastBatchKey = LastBatchKey()

    init(_ device: NamedKey) throws(Failure) {
      self.device = device
      lookup = try device.key.derived(.lookup)
      notices = try device.key.derived(.notices)
      signIns = try device.key.derived(.signIns)
      revocations = try device.key.derived(.revocations)
      queues = try device.key.derived(.queues)
    }

    // Keyed tags stand for ids in the file, so that ids cannot be read from it.

    func userTag(_ user: UUID) -> [UInt8] { lookup.tag("user", user.bytes) }

    /// nil: no organisation.
    func orgTag(_ org: UUID?) -> [UInt8] { lookup.tag("org", org?.bytes ?? []) }

    func itemTag(_ item: UUID, _ owner: [UInt8]) -> [UInt8] {
      lookup.tag("item", owner, item.bytes)
    }
  }

  let store: CheckedKeyStore
  private(set) var keys: Keys?

  /// The name of the open file's device key.
  private(set) var deviceName = KeyName.device
  /// The key that the store's last answers were that it does not have: the device's, or, with that, the
  /// session's; and since when, by the monotonic clock.
  private var missing: (name: KeyName, sinceMS: Int64)?
  /// Keys that seal what a sign-in needs while those of the files are lost.
  private var provisionalKeys: Keys?
  private let deadlineMS: Int64
  /// The store was asked for the device key since the handle was opened.
  private(set) var wasAsked = false
  private let clock: Clock
  /// The host's key store has the keys, and not key files.
  private let isOfHost: Bool

  init(
    _ store: any KeyStore, deadlineMS: Int64, _ clock: Clock, isOfHost: Bool = true
  ) {
    self.isOfHost = isOfHost
    self.store = CheckedKeyStore(store)
    self.deadlineMS = deadlineMS
    self.clock = clock
  }

  static var checkContext: SealContext {
    SealContext(table: "meta", column: MetaTable.Name.keyCheck.text)
  }

  /// Whether the key has made this check. It is there twice: what damages one of them costs no file its key.
  static func opens(_ check: [UInt8], _ key: Key) throws(Failure) -> Bool {
    let half = check.count / 2
    if try key.open(Array(check[..<half]), checkContext) != nil { return true }
    return try key.open(Array(check[half...]), checkContext) != nil
  }

  private enum Found {
    case key(Key)
    case refused(KeyRefusal)
  }

  private func loadDevice() -> Found {
    do throws(KeyRefusal) {
      return .key(try store.load(deviceName))
    } catch {
      // A key that the store has invalidated or damaged is as one that it does not have.
      return .refused(error.isGone ? .notFound : error)
    }
  }

  /// The key that the store says it does not have.
  var missingName: KeyName? { missing?.name }

  /// The store has no key of this name for the files: no answer until the deadline, then a lost key.
  func miss(_ name: KeyName) -> Situation.Keys {
    let nowMS = clock.now().monotonicMS
    if missing?.name != name { missing = (name, nowMS) }
    return nowMS - (missing?.sinceMS ?? nowMS) < deadlineMS ? .failed : .lost
  }

  /// The store has the key, or has not said that it does not.
  func endMiss(_ name: KeyName) {
    if missing?.name == name { missing = nil }
  }

  /// Whether something was sealed with the device key of this file, or of the one that it replaces.
  private func hasProof(_ meta: MetaTable) throws(Failure) -> Bool {
    if try meta.blob(.keyCheck) != nil { return true }
    return try meta.text(.salvage) != nil
  }

  /// The state of the device key, from the key store. The first use of a new folder makes the key.
  func state(for database: Database) throws(Failure) -> Situation.Keys {
    if keys != nil { return .ready }
    let meta = MetaTable(database)
    deviceName = .device(try meta.int(.deviceKey) ?? 0)
    let hasProof = try hasProof(meta)
    wasAsked = true
    let found = loadDevice()
    guard case .refused(.notFound) = found else { return try judge(found, database) }
    // A damaged key is not overwritten at once either.
    if hasProof || store.trouble?.answer == .damaged, miss(deviceName) == .failed { return .failed }
    if hasProof { return .lost }
    // The key counts only once the file has the proof of it.
    do throws(Failure) { return try make(database, meta) } catch {
      keys = nil
      throw error
    }
  }

  private func make(_ database: Database, _ meta: MetaTable) throws(Failure) -> Situation.Keys {
    // Under the file's write lock, so that only one of several processes makes the key.
    try database.transaction { () throws(Failure) in
      let found = loadDevice()
      guard case .refused(.notFound) = found, try !self.hasProof(meta) else {
        return try judge(found, database)
      }
      let fresh = try Key.random()
      do throws(KeyRefusal) { try store.save(fresh, deviceName, beside: nil) } catch {
        return error == .locked ? .locked : .failed
      }
      return try judge(.key(fresh), database)
    }
  }

  private func judge(_ found: Found, _ database: Database) throws(Failure) -> Situation.Keys {
    switch found {
    case .key(let device): return try adopt(device, MetaTable(database)) ? .ready : miss(deviceName)
    case .refused(.notFound): return miss(deviceName)
    case .refused(let refusal):
      endMiss(deviceName)
      return refusal == .locked ? .locked : .failed
    }
  }

  /// False when this key did not seal this file.
  private func adopt(_ device: Key, _ meta: MetaTable) throws(Failure) -> Bool {
    if let check = try meta.blob(.keyCheck) {
      guard try KeyRing.opens(check, device) else { return false }
    } else {
      // First, so that no crash leaves a proof without it.
      if isOfHost { try meta.set(.hasHostKeys, .int(1)) }
      let seal = try device.seal([:] as JSON, KeyRing.checkContext)
      try meta.set(.keyCheck, .blob(seal + seal))
    }
    endMiss(deviceName)
    keys = try Keys(NamedKey(device, deviceName))
    return true
  }

  /// Keys that stand for lost ones while somebody signs in.
  func provisional() throws(Failure) -> Keys {
    if let provisionalKeys { return provisionalKeys }
    let made = try Keys(NamedKey(try Key.random(), deviceName))
    provisionalKeys = made
    return made
  }

  /// Whether somebody signs in while the files' keys are lost.
  var isProvisional: Bool { provisionalKeys != nil }

  /// The files' keys are back, or new ones are there; returns whether somebody was signing in without them.
  func endProvisional() -> Bool {
    guard keys != nil, isProvisional else { return false }
    provisionalKeys = nil
    return true
  }

  /// The name of the device key with which files follow that have lost theirs.
  private var nextDeviceName: KeyName { .device(deviceName.number + 1) }

  func saveNext(_ failure: (KeyRefusal) -> Failure) throws(Failure) {
    let key = try Key.random()
    do throws(KeyRefusal) { try store.save(key, nextDeviceName, beside: nil) } catch {
      throw failure(error)
    }
  }

  /// Ask the key store again at the next use.
  func forget() { keys = nil }
}
