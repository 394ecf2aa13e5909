import Base

/// The two keys that a key store holds, under these names.
public enum KeyName: String, Sendable {
  /// Readable after the device was first unlocked.
  case device
  /// Released only to the user's presence.
  case biometric
}

/// Why a key store gave nothing; the numbers are the header's `HOLDFAST_KEY_*`.
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
}

/// Where keys live: the platform's, or a file.
public protocol KeyStore: AnyObject {
  func load(_ name: KeyName) throws(KeyRefusal) -> Key
  func save(_ key: Key, _ name: KeyName) throws(KeyRefusal)
  /// Removing what is not there succeeds.
  func erase(_ name: KeyName) throws(KeyRefusal)
}

/// A key store given as functions: `context`, name, bytes.
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
    // Room for more than a key, so that a store that writes too much is noticed, not obeyed.
    guard let room = try? SecretBytes(count: 64, room: .guarded) else { throw .failed }
    var length = 0
    let answer = name.rawValue.withCString {
      loadKey(context, $0, room.start.assumingMemoryBound(to: UInt8.self), Key.size, &length)
    }
    try check(answer)
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
    let answer = name.rawValue.withCString { eraseKey(context, $0) }
    if answer != KeyRefusal.notFound.rawValue { try check(answer) }
  }

  /// An answer that the header does not know counts as failed.
  private func check(_ answer: Int32) throws(KeyRefusal) {
    guard answer != 0 else { return }
    throw KeyRefusal(rawValue: answer) ?? .failed
  }
}
