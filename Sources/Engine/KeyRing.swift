import Base
import Policy
import Store
import Vault

/// The device key and the keys derived from it, loaded from the key store at first use.
final class KeyRing {
  struct Keys {
    let device: Key
    let lookup: Key
    let durableEvents: Key
    let signIns: Key
    let revocations: Key
    let queues: Key

    // Keyed tags stand for ids in the file, so that ids cannot be read from it.

    func userTag(_ user: UUID) -> [UInt8] { lookup.tag("user", user.bytes) }

    /// nil: no organisation.
    func orgTag(_ org: UUID?) -> [UInt8] { lookup.tag("org", org?.bytes ?? []) }

    func itemTag(_ item: UUID, _ owner: [UInt8]) -> [UInt8] {
      lookup.tag("item", owner, item.bytes)
    }
  }

  let store: any CheckedKeys
  /// The same, when the host is asked in `poll`.
  let requested: RequestedKeys?
  private(set) var keys: Keys?

  /// When the store first answered with a damaged device key, by the monotonic clock. It counts as no
  /// answer until the deadline, in case the store is being restored; then the key is lost.
  private var damagedSinceMS: Int64?
  private let deadlineMS: Int64
  /// Whether the file had a proof of the device key when the store was last asked for it.
  private var askedWithCheck = false
  /// This handle has the turn to change keys, and may make the device key.
  private(set) var isMaking = false
  private let clock: Clock
  /// The host's key store has the keys, and not key files.
  private let isOfHost: Bool

  init(
    _ store: any KeyStore, deadlineMS: Int64, _ clock: Clock, isOfHost: Bool = true
  ) {
    self.isOfHost = isOfHost
    self.store = CheckedKeyStore(store)
    requested = nil
    self.deadlineMS = deadlineMS
    self.clock = clock
  }

  init(_ requested: RequestedKeys, deadlineMS: Int64, _ clock: Clock) {
    isOfHost = true
    store = requested
    self.requested = requested
    self.deadlineMS = deadlineMS
    self.clock = clock
  }

  static var checkContext: SealContext {
    SealContext(table: "meta", column: MetaTable.Name.keyCheck.text)
  }

  private enum Found {
    case key(Key)
    case refused(KeyRefusal)
  }

  private func loadDevice() -> Found {
    do throws(KeyRefusal) {
      let key = try store.load(.device)
      damagedSinceMS = nil
      return .key(key)
    } catch {
      // A key that the store has invalidated is as one that it does not have: a new file gets a new
      // key, else it would be set aside again and again, and what it still has to carry over with it.
      if error == .invalidated { return .refused(.notFound) }
      guard error == .damaged else { return .refused(error) }
      let nowMS = clock.now().monotonicMS
      let sinceMS = damagedSinceMS ?? nowMS
      damagedSinceMS = sinceMS
      return .refused(nowMS - sinceMS < deadlineMS ? .failed : .notFound)
    }
  }

  /// The state of the device key, from the key store. The first use of a new folder makes the key, if
  /// it is this handle's `turn` to change keys.
  func state(
    for database: Database, turn: () throws(Failure) -> KeyTurn.Answer = { .held }
  ) throws(Failure) -> Situation.Keys {
    if keys != nil { return .ready }
    let check = try MetaTable(database).blob(.keyCheck)
    // That there was no key before another process made one does not prove that it is lost.
    if (check != nil) != askedWithCheck { store.distrust(.device) }
    askedWithCheck = check != nil
    // While a new key is being saved it is known that there is none.
    var found =
      check == nil && store.prepared(.device) != nil ? .refused(.notFound) : loadDevice()
    guard case .refused(.notFound) = found else { return try judge(found, database) }
    guard check == nil else { return .lost }
    if let refusal = requested?.refusedSave(.device) {
      return refusal == .locked ? .locked : .failed
    }
    switch try turn() {
    case .taken:
      // Who had it before may have made a key.
      store.distrust(.device)
      isMaking = true
      found = loadDevice()
      guard case .refused(.notFound) = found else { return try judge(found, database) }
    case .held: break
    case .refused: return .pending
    }
    // Under the file's write lock, so that only one of several processes makes the key.
    return try database.transaction { () throws(Failure) in
      if try MetaTable(database).blob(.keyCheck) != nil {
        store.distrust(.device)
        return try judge(loadDevice(), database)
      }
      if store.prepared(.device) == nil {
        let found = loadDevice()
        guard case .refused(.notFound) = found else { return try judge(found, database) }
      }
      let fresh = try newKey(.device)
      do throws(KeyRefusal) { try store.save(fresh, .device, beside: nil) } catch {
        switch error {
        case .pending: return .pending
        case .locked:
          isMaking = false
          return .locked
        default:
          isMaking = false
          return .failed
        }
      }
      return try judge(.key(fresh), database)
    }
  }

  private func judge(_ found: Found, _ database: Database) throws(Failure) -> Situation.Keys {
    if case .refused(.pending) = found { return .pending }
    isMaking = false
    switch found {
    case .key(let device): return try adopt(device, MetaTable(database)) ? .ready : .lost
    case .refused(.notFound): return .lost
    case .refused(.locked): return .locked
    case .refused: return .failed
    }
  }

  /// False when this key did not seal this file.
  private func adopt(_ device: Key, _ meta: MetaTable) throws(Failure) -> Bool {
    if let check = try meta.blob(.keyCheck) {
      guard try device.open(check, KeyRing.checkContext) != nil else { return false }
    } else {
      // First, so that no crash leaves a proof without it.
      if isOfHost { try meta.set(.hasHostKeys, .int(1)) }
      try meta.set(.keyCheck, .blob(try device.seal([:] as JSON, KeyRing.checkContext)))
    }
    keys = Keys(
      device: device, lookup: try device.derived(.lookup),
      durableEvents: try device.derived(.notices), signIns: try device.derived(.signIns),
      revocations: try device.derived(.revocations), queues: try device.derived(.queues))
    return true
  }

  /// A new key to save: the one that is being saved already, or a fresh one.
  func newKey(_ name: KeyName) throws(Failure) -> Key {
    if let prepared = store.prepared(name) { return prepared }
    return try Key.random()
  }

  /// Ask the key store again at the next use.
  func forget() { keys = nil }
}
