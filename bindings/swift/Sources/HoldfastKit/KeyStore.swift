import Foundation

public typealias KeyName = KeyRequestName
public typealias KeyProtection = KeyRequestProtection
public typealias KeyResult = KeyCompleteRequestResult

/// A key store's answer other than the key: `locked`, `cancelled`, `invalidated`, ...
public struct KeyFailure: Error, Sendable, Hashable {
  public let result: KeyResult
  public init(_ result: KeyResult) { self.result = result }
}

/// The platform's keychain. A key has 32 bytes. The library asks for one operation at a time under each
/// name. A method that fails throws a `KeyFailure`; any other error counts as `failed`.
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

extension KeyStore {
  /// Carry out a key request. An error becomes a result.
  func serve(_ request: KeyRequest) async -> KeyCompleteRequest {
    let result: KeyResult
    do {
      switch request.operation {
      case .load:
        guard let key = try await load(request.name, prompt: request.prompt) else {
          return KeyCompleteRequest(id: request.id, result: .notFound)
        }
        let text = OrNull.value(key.base64EncodedString())
        return KeyCompleteRequest(id: request.id, result: .ok, value: text)
      case .save:
        guard let key = Data(base64Encoded: request.value ?? "") else { throw KeyFailure(.failed) }
        try await save(request.name, key, protection: request.protection)
        result = .ok
      case .erase:
        try await erase(request.name)
        result = .ok
      default: throw KeyFailure(.failed)
      }
    } catch let failure as KeyFailure {
      result = failure.result == .ok ? .failed : failure.result
    } catch {
      result = Task.isCancelled ? .cancelled : .failed
    }
    return KeyCompleteRequest(id: request.id, result: result)
  }
}
