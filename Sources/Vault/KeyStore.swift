import Base
import CPlatform

/// The name of a key in a key store.
public struct KeyName: Hashable, Sendable {
  /// The raw value is its name in the API.
  public enum Kind: String, Sendable {
    /// Readable once the device has been unlocked after its start.
    case device
    /// As readable as `device`. It exists only while the session is unlocked.
    case session
    /// Released only after the user has proved presence, for example by a fingerprint.
    case biometric
  }

  public let kind: Kind
  /// 0, except for a device key that follows a lost one. A device key is never saved over another one:
  /// what a key store has "not found" may be there later.
  public let number: Int64

  private init(_ kind: Kind, _ number: Int64 = 0) {
    self.kind = kind
    self.number = number
  }

  public static var device: KeyName { KeyName(.device) }
  public static var session: KeyName { KeyName(.session) }
  public static var biometric: KeyName { KeyName(.biometric) }

  /// The device key of files that began anew `number` times.
  public static func device(_ number: Int64) -> KeyName { KeyName(.device, number) }

  /// As the key store gets it: `device`, `device_b`, `device_c`, … in letters and underscores, which
  /// every store takes.
  public var text: String {
    guard number > 0 else { return kind.rawValue }
    var letters: [UInt8] = []
    var left = number
    while left > 0 {
      letters.insert(UInt8(ascii: "a") + UInt8(left % 26), at: 0)
      left /= 26
    }
    return kind.rawValue + "_" + String(decoding: letters, as: UTF8.self)
  }
}

/// Why a key store returned an error. The numbers are the header's `HOLDFAST_KEY_*`.
public enum KeyRefusal: Int32, Error, Sendable {
  case notFound = 1
  case locked = 2
  case cancelled = 3
  case failed = 4
  case lockout = 5
  case lockoutPermanent = 6
  case notEnrolled = 7
  case invalidated = 8
  case unavailable = 9
  /// The built-in store's file is no key. A host's store does not answer with this number.
  case damaged = -1

  // What the library finds out itself.

  /// The store answered with another key than the one that it was given.
  case otherKey = -2
  /// The store answered with something that is no key.
  case wrongLength = -3
  /// The store has the key after it has erased it.
  case stillThere = -4

  /// The store does not have the key that it was given.
  var isLoss: Bool { isGone || self == .otherKey }

  /// The store answered, and has no key under the name that could open anything.
  public var isGone: Bool {
    switch self {
    case .notFound, .invalidated, .damaged: return true
    default: return false
    }
  }
}

/// A key and its name in the key store.
public struct NamedKey {
  public let key: Key
  public let name: KeyName

  public init(_ key: Key, _ name: KeyName) { (self.key, self.name) = (key, name) }
}

/// A store for keys: the platform's, or files.
public protocol KeyStore: AnyObject {
  func load(_ name: KeyName) throws(KeyRefusal) -> Key
  func save(_ key: Key, _ name: KeyName) throws(KeyRefusal)
  /// Erases a key. Succeeds when there is none.
  func erase(_ name: KeyName) throws(KeyRefusal)
}

/// The keys of a key store that is not taken at its word: what was saved is read back, and what was
/// erased is looked for.
public final class CheckedKeyStore {
  private let store: any KeyStore
  /// What the last refusal was about.
  public private(set) var trouble: KeyTrouble?
  /// The faults in the log. None is repeated until the operation has succeeded.
  private var told: [KeyTrouble] = []

  public init(_ store: any KeyStore) { self.store = store }

  public func load(_ name: KeyName) throws(KeyRefusal) -> Key {
    let key: Key
    do throws(KeyRefusal) { key = try store.load(name) } catch {
      throw note(.load, name, error)
    }
    noteSuccess(.load, name)
    return key
  }

  /// Fails also when the store answers OK and has another key, or none, and when the store has lost
  /// `device`, as one that does not tell names apart has. A key behind presence is not read back,
  /// because that takes the user: its first unlock shows it. Once it is saved, only a `device` that cannot
  /// be saved again is a failure, because the key from before is gone.
  public func save(
    _ key: Key, _ name: KeyName, beside device: NamedKey?
  ) throws(KeyRefusal) {
    try saveChecked(key, name)
    guard let device else { return }
    do throws(KeyRefusal) { try readBack(device.key, device.name) } catch {
      if error.isLoss { try saveChecked(device.key, device.name) }
      guard name != .biometric else { return }
      throw note(.readBack, device.name, error)
    }
  }

  /// Save a key again, if the store has lost it.
  public func keep(_ known: NamedKey) throws(KeyRefusal) {
    do throws(KeyRefusal) { try readBack(known.key, known.name) } catch {
      guard error.isLoss else { throw note(.load, known.name, error) }
      try saveChecked(known.key, known.name)
    }
  }

  private func saveChecked(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    do throws(KeyRefusal) { try store.save(key, name) } catch { throw note(.save, name, error) }
    noteSuccess(.save, name)
    guard name != .biometric else { return }
    do throws(KeyRefusal) { try readBack(key, name) } catch { throw note(.readBack, name, error) }
    noteSuccess(.readBack, name)
  }

  /// Throws unless the store has this key and no other under the name.
  private func readBack(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    guard try store.load(name).isEqual(to: key) else { throw .otherKey }
  }

  /// Fails also when the store answers OK and still has the key, or cannot say.
  public func erase(_ name: KeyName) throws(KeyRefusal) {
    do throws(KeyRefusal) { try eraseChecked(name) } catch { throw note(.erase, name, error) }
    noteSuccess(.erase, name)
  }

  private func eraseChecked(_ name: KeyName) throws(KeyRefusal) {
    try store.erase(name)
    do throws(KeyRefusal) { _ = try store.load(name) } catch {
      guard error == .notFound || error == .invalidated else { throw error }
      return
    }
    throw .stillThere
  }

  /// Remember a trouble; returns its refusal, to throw.
  @inline(never)
  private func note(
    _ operation: KeyTrouble.Operation, _ name: KeyName, _ answer: KeyRefusal
  ) -> KeyRefusal {
    let found = KeyTrouble(operation, name, answer)
    trouble = found
    if found.isFault, !told.contains(where: { $0.isAbout(operation, name) }) {
      told.append(found)
      Log.line(.warning, found.text("key store"))
    }
    return answer
  }

  @inline(never)
  private func noteSuccess(_ operation: KeyTrouble.Operation, _ name: KeyName) {
    if trouble?.isAbout(operation, name) == true { trouble = nil }
    told.removeAll { $0.isAbout(operation, name) }
  }
}

/// The key store of the host, as C functions with a `context`.
public final class HostKeyStore: KeyStore {
  public typealias Load =
    @convention(c) (
      UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<UInt8>?, Int,
      UnsafeMutablePointer<Int>?
    ) -> Int32
  public typealias Save =
    @convention(c) (
      UnsafeMutableRawPointer?, UnsafePointer<CChar>?, UnsafePointer<UInt8>?, Int, Int32
    ) -> Int32
  public typealias Erase =
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?) -> Int32
  public typealias Destroy = @convention(c) (UnsafeMutableRawPointer?) -> Void

  private let context: UnsafeMutableRawPointer?
  private let loadKey: Load
  private let saveKey: Save
  private let eraseKey: Erase
  private let destroy: Destroy?

  /// `destroy` is called once, with the last use of `context`.
  public init(
    context: UnsafeMutableRawPointer?, load: @escaping Load, save: @escaping Save,
    erase: @escaping Erase, destroy: Destroy? = nil
  ) {
    self.context = context
    loadKey = load
    saveKey = save
    eraseKey = erase
    self.destroy = destroy
  }

  deinit { destroy?(context) }

  public func load(_ name: KeyName) throws(KeyRefusal) -> Key {
    // The buffer is larger than a key, to notice a store that returns too many bytes.
    guard let room = try? SecretBytes(count: 64, room: .guarded) else { throw .failed }
    var length = 0
    let result = calledBack(name) {
      loadKey(context, $0, room.start.assumingMemoryBound(to: UInt8.self), Key.size, &length)
    }
    try check(result)
    guard length == Key.size else { throw .wrongLength }
    guard
      let bytes = try? SecretBytes(
        copying: UnsafeRawBufferPointer(rebasing: room.bytes[0..<Key.size])),
      let key = Key(bytes)
    else { throw .failed }
    return key
  }

  public func save(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    let protection: Int32 = name == .biometric ? 1 : 0
    let result = calledBack(name) {
      saveKey(
        context, $0, key.secret.start.assumingMemoryBound(to: UInt8.self), Key.size, protection)
    }
    try check(result)
  }

  public func erase(_ name: KeyName) throws(KeyRefusal) {
    let result = calledBack(name) { eraseKey(context, $0) }
    if result != KeyRefusal.notFound.rawValue { try check(result) }
  }

  /// Calls a function of the host. It must not call the library, on no handle: two threads would wait for
  /// each other.
  private func calledBack(_ name: KeyName, _ function: (UnsafePointer<CChar>) -> Int32) -> Int32 {
    platform_callback(true)
    defer { platform_callback(false) }
    return name.text.withCString(function)
  }

  /// Throws for every result but 0. Numbers that the header does not define count as `failed`.
  private func check(_ result: Int32) throws(KeyRefusal) {
    guard result != 0 else { return }
    guard result > 0 else { throw .failed }
    throw KeyRefusal(rawValue: result) ?? .failed
  }
}
