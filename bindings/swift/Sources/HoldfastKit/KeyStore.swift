import Foundation

/// The name of a key. One that replaces a lost `device` is `device_b`, then `device_c`, ...
public struct KeyName: OpenCode {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }

  public static let device = KeyName(rawValue: "device")
  public static let session = KeyName(rawValue: "session")
  public static let biometric = KeyName(rawValue: "biometric")
}

/// HOLDFAST_PROTECT_* of `holdfast.h`.
public enum KeyProtection: Int32, Sendable {
  /// Readable after the first unlock; never leaves this device.
  case device
  /// Needs the user's presence; lost on re-enrolment.
  case biometric
}

/// HOLDFAST_KEY_* of `holdfast.h`, which says what each means.
public enum KeyResult: Int32, Sendable {
  case ok, notFound, locked, cancelled, failed, lockout, lockoutPermanent, notEnrolled, invalidated
  case unavailable
}

/// What Apple's Keychain and prompts answer (docs/platforms.md has the tables).
extension KeyResult {
  /// The result of a call of the Keychain. Only what is known to mean it is `notFound`: the library offers the sign-in
  /// where the device key is not found.
  init(status: Int32) {
    switch status {
    case 0: self = .ok
    case -25300: self = .notFound  // errSecItemNotFound
    // errSecInteractionNotAllowed: before the first unlock after a start
    case -25308: self = .locked
    case -128: self = .cancelled  // errSecUserCanceled
    default: self = .failed
    }
  }

  /// What came of a prompt, from the code of an LAError; nil: success.
  init(prompt code: Int?) {
    switch code {
    case nil: self = .ok
    case -1: self = .failed  // authenticationFailed
    case -2, -3, -4, -9, -1004: self = .cancelled  // user, fallback, system, app; notInteractive
    case -8: self = .lockoutPermanent  // biometryLockout: only the device's passcode ends it
    case -5, -7: self = .notEnrolled  // passcodeNotSet, biometryNotEnrolled
    case -6, -12, -13: self = .unavailable  // biometryNotAvailable, NotPaired, Disconnected
    default: self = .failed
    }
  }
}

/// A key store's answer other than the key: `locked`, `cancelled`, `invalidated`, ...
public struct KeyFailure: Error, Sendable, Hashable {
  public let result: KeyResult
  public init(_ result: KeyResult) { self.result = result }
}

/// The platform's keychain. A key has 32 bytes. A method that fails throws a `KeyFailure`; any other error
/// counts as `failed`. A call of the library waits for it, ten seconds at most, so it must not call the
/// library. Only a `load` with a prompt takes its time, because no call waits for it.
public protocol KeyStore: Sendable {
  /// The key; nil only if the store works and has no such key. `prompt` is the text for the prompt with
  /// which the user releases `biometric`. With nil show none: a key that needs one is `cancelled`. The
  /// task is cancelled when nobody needs the key any more: dismiss the prompt, and throw.
  func load(_ name: KeyName, prompt: String?) async throws -> Data?
  /// Store or replace it durably, without a prompt.
  func save(_ name: KeyName, _ key: Data, protection: KeyProtection) async throws
  /// Remove it; a missing key is no failure.
  func erase(_ name: KeyName) async throws
}

/// Keys in the memory of this process, for tests.
public actor MemoryKeyStore: KeyStore {
  public private(set) var keys: [KeyName: Data] = [:]

  public init() {}

  public func load(_ name: KeyName, prompt: String?) -> Data? { keys[name] }
  public func save(_ name: KeyName, _ key: Data, protection: KeyProtection) { keys[name] = key }
  public func erase(_ name: KeyName) { keys[name] = nil }
}

/// Keys in files of their own, with mode 0600: for Linux, on another volume than the data. They protect
/// against no reader of that volume, and need no prompt.
public struct FileKeyStore: KeyStore {
  private let folder: URL

  /// The folder is created with mode 0700 at the first save.
  public init(folder: URL) { self.folder = folder }

  public func load(_ name: KeyName, prompt: String?) throws -> Data? {
    do { return try Data(contentsOf: place(of: name)) } catch CocoaError.fileReadNoSuchFile {
      return nil
    }
  }

  public func save(_ name: KeyName, _ key: Data, protection: KeyProtection) throws {
    let files = FileManager.default
    try files.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let fresh = folder.appendingPathComponent("\(name.rawValue).new")
    try? files.removeItem(at: fresh)
    let isMade = files.createFile(
      atPath: fresh.path, contents: nil, attributes: [.posixPermissions: 0o600])
    guard isMade else { throw KeyFailure(.failed) }
    let file = try FileHandle(forWritingTo: fresh)
    try file.write(contentsOf: key)
    try file.synchronize()
    try file.close()
    guard rename(fresh.path, place(of: name).path) == 0 else { throw KeyFailure(.failed) }
    try synchronize()
  }

  public func erase(_ name: KeyName) throws {
    do {
      let file = try FileHandle(forWritingTo: place(of: name))
      try file.write(contentsOf: Data(count: 32))
      try file.synchronize()
      try file.close()
      try FileManager.default.removeItem(at: place(of: name))
    } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
      return
    }
    try synchronize()
  }

  /// A new name is durable when its folder is.
  private func synchronize() throws {
    let descriptor = open(folder.path, O_RDONLY)
    guard descriptor >= 0 else { throw KeyFailure(.failed) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw KeyFailure(.failed) }
  }

  private func place(of name: KeyName) -> URL {
    folder.appendingPathComponent("\(name.rawValue).key")
  }
}
