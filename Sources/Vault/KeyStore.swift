import Base

/// The names of the two keys in a key store.
public enum KeyName: String, Sendable {
  /// Readable once the device has been unlocked after its start.
  case device
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
}

/// A store for keys: the platform's, or files.
public protocol KeyStore: AnyObject {
  func load(_ name: KeyName) throws(KeyRefusal) -> Key
  func save(_ key: Key, _ name: KeyName) throws(KeyRefusal)
  /// Erases a key. Succeeds when there is none.
  func erase(_ name: KeyName) throws(KeyRefusal)
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

  private let context: UnsafeMutableRawPointer?
  private let loadKey: Load
  private let saveKey: Save
  private let eraseKey: Erase

  public init(
    context: UnsafeMutableRawPointer?, load: @escaping Load, save: @escaping Save,
    erase: @escaping Erase
  ) {
    self.context = context
    loadKey = load
    saveKey = save
    eraseKey = erase
  }

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
