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

  let store: CheckedKeyStore
  private(set) var keys: Keys?

  /// When the store first answered with a damaged device key, by the monotonic clock. It counts as no
  /// answer until the deadline, in case the store is being restored; then the key is lost.
  private var damagedSinceMS: Int64?
  private let deadlineMS: Int64
  private let clock: Clock

  init(_ store: any KeyStore, deadlineMS: Int64, _ clock: Clock) {
    self.store = CheckedKeyStore(store)
    self.deadlineMS = deadlineMS
    self.clock = clock
  }

  private static var checkContext: SealContext {
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

  /// The state of the device key, from the key store. The first use of a new folder makes the key.
  func state(for database: Database) throws(Failure) -> Situation.Keys {
    if keys != nil { return .ready }
    let found = loadDevice()
    guard case .refused(.notFound) = found else { return try judge(found, database) }
    guard try MetaTable(database).blob(.keyCheck) == nil else { return .lost }
    // Under the file's write lock, so that only one of several processes makes the key.
    return try database.transaction { () throws(Failure) in
      let found = loadDevice()
      guard case .refused(.notFound) = found else { return try judge(found, database) }
      let fresh = try Key.random()
      do throws(KeyRefusal) { try store.save(fresh, .device) } catch {
        return error == .locked ? .locked : .failed
      }
      return try judge(.key(fresh), database)
    }
  }

  private func judge(_ found: Found, _ database: Database) throws(Failure) -> Situation.Keys {
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
      try meta.set(.keyCheck, .blob(try device.seal([:] as JSON, KeyRing.checkContext)))
    }
    keys = Keys(
      device: device, lookup: try device.derived(.lookup),
      durableEvents: try device.derived(.notices), signIns: try device.derived(.signIns),
      revocations: try device.derived(.revocations), queues: try device.derived(.queues))
    return true
  }

  /// Ask the key store again at the next use.
  func forget() { keys = nil }
}
