import Base
import Policy
import Store
import Vault

/// The device key and what derives from it, read from the key store when first needed.
final class KeyRing {
  struct Keys {
    let device: Key
    let lookup: Key
    let notices: Key
    let signIns: Key
    let revocations: Key
    let queues: Key
  }

  let store: any KeyStore
  private(set) var keys: Keys?

  init(_ store: any KeyStore) { self.store = store }

  private static var checkContext: SealContext {
    SealContext(table: "meta", column: MetaTable.Name.keyCheck.rawValue)
  }

  /// What the key store says of the device key. The first use of a fresh folder makes one.
  func state(for database: Database) throws(Failure) -> Situation.Keys {
    if keys != nil { return .ready }
    let meta = MetaTable(database)
    do throws(KeyRefusal) {
      let device = try store.load(.device)
      return try adopt(device, meta) ? .ready : .lost
    } catch .notFound {
      return try meta.blob(.keyCheck) == nil ? try create(in: database) : .lost
    } catch .invalidated {
      return .lost
    } catch .locked {
      return .locked
    } catch {
      return .failed
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
      device: device, lookup: try device.derived(.lookup), notices: try device.derived(.notices),
      signIns: try device.derived(.signIns), revocations: try device.derived(.revocations),
      queues: try device.derived(.queues))
    return true
  }

  /// Under the file's write lock, so that of several processes one makes the key.
  private func create(in database: Database) throws(Failure) -> Situation.Keys {
    try database.transaction { () throws(Failure) in
      let meta = MetaTable(database)
      do throws(KeyRefusal) {
        let device = try store.load(.device)
        return try adopt(device, meta) ? .ready : .lost
      } catch .notFound {
        let fresh = try Key.random()
        do throws(KeyRefusal) { try store.save(fresh, .device) } catch {
          return error == .locked ? .locked : .failed
        }
        return try adopt(fresh, meta) ? .ready : .lost
      } catch .locked {
        return .locked
      } catch {
        return .failed
      }
    }
  }

  func forget() { keys = nil }
}
