import Base

/// The names of the keys in a key store.
public enum KeyName: String, Sendable {
  /// Readable once the device has been unlocked after its start.
  case device
  /// As readable as `device`. It exists only while the session is unlocked.
  case session
  /// Released only after the user has proved presence, for example by a fingerprint.
  case biometric
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
  /// The host was asked, and its answer comes with a later call. No function answers with this number.
  case pending = -2

  /// The store answered, and has no key under the name that could open anything.
  public var isGone: Bool {
    switch self {
    case .notFound, .invalidated, .damaged: return true
    default: return false
    }
  }
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
///
/// A store that answers later throws `pending`, and the caller tries the whole step again when the
/// answer is there. So a step that saves a key asks for `prepared` first, and saves the same key again.
public protocol CheckedKeys: AnyObject {
  func load(_ name: KeyName) throws(KeyRefusal) -> Key
  /// Fails also when the store answers OK and has another key, or none, and when the store has lost
  /// `device`, as one that does not tell names apart has. A key behind presence is not read back,
  /// because that takes the user: its first unlock shows it.
  func save(_ key: Key, _ name: KeyName, beside device: Key?) throws(KeyRefusal)
  /// Fails also when the store answers OK and still has the key, or cannot say.
  func erase(_ name: KeyName) throws(KeyRefusal)
  /// A new key that is being saved, or was, for a step that is not done.
  func prepared(_ name: KeyName) -> Key?
  /// What the store has answered to `load` so far counts no more.
  func distrust(_ name: KeyName)
}

/// The keys of a store that answers at once.
public final class CheckedKeyStore: CheckedKeys {
  private let store: any KeyStore

  public init(_ store: any KeyStore) { self.store = store }

  public func load(_ name: KeyName) throws(KeyRefusal) -> Key { try store.load(name) }

  public func save(
    _ key: Key, _ name: KeyName, beside device: Key?
  ) throws(KeyRefusal) {
    try saveChecked(key, name)
    if let device, name != .device, try !has(device, .device) {
      try saveChecked(device, .device)
      throw .failed
    }
  }

  private func saveChecked(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    try store.save(key, name)
    if name == .biometric { return }
    guard try has(key, name) else { throw .failed }
  }

  /// Whether the store has this key and no other under the name. Throws when the store cannot say.
  private func has(_ key: Key, _ name: KeyName) throws(KeyRefusal) -> Bool {
    do throws(KeyRefusal) { return try store.load(name).isEqual(to: key) } catch {
      if error.isGone { return false }
      throw error
    }
  }

  public func erase(_ name: KeyName) throws(KeyRefusal) {
    try store.erase(name)
    do throws(KeyRefusal) { _ = try store.load(name) } catch {
      guard error == .notFound || error == .invalidated else { throw error }
      return
    }
    throw .failed
  }

  public func prepared(_ name: KeyName) -> Key? { nil }

  public func distrust(_ name: KeyName) {}
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
    let result = name.rawValue.withCString {
      loadKey(context, $0, room.start.assumingMemoryBound(to: UInt8.self), Key.size, &length)
    }
    try check(result)
    guard length == Key.size,
      let bytes = try? SecretBytes(
        copying: UnsafeRawBufferPointer(rebasing: room.bytes[0..<Key.size])),
      let key = Key(bytes)
    else { throw .failed }
    return key
  }

  public func save(_ key: Key, _ name: KeyName) throws(KeyRefusal) {
    let protection: Int32 = name == .biometric ? 1 : 0
    try check(
      name.rawValue.withCString {
        saveKey(
          context, $0, key.secret.start.assumingMemoryBound(to: UInt8.self), Key.size, protection)
      })
  }

  public func erase(_ name: KeyName) throws(KeyRefusal) {
    let result = name.rawValue.withCString { eraseKey(context, $0) }
    if result != KeyRefusal.notFound.rawValue { try check(result) }
  }

  /// Throws for every result but 0. Numbers that the header does not define count as `failed`.
  private func check(_ result: Int32) throws(KeyRefusal) {
    guard result != 0 else { return }
    guard result > 0 else { throw .failed }
    throw KeyRefusal(rawValue: result) ?? .failed
  }
}
