import Foundation

/// The rules of `docs/platforms.md` for Apple's Keychain. Only the prompt of `load` can show anything:
/// every call of the Keychain that could ask the user has a context that forbids it, or one that the
/// user has released.
struct KeychainRules<Chain: Keychain>: KeyStore {
  typealias Query = KeychainQuery<Chain.Context>

  /// Other processes save and erase, too.
  private static var attempts: Int { 3 }
  private static var keyBytes: Int { 32 }

  let chain: Chain
  let service: String
  let group: String?
  /// False: an item may be there and not be found, as before the first unlock.
  var isReadable: @Sendable () async -> Bool = { true }

  private func item(_ name: KeyName) -> Query {
    Query(service: service, account: name.rawValue, group: group)
  }

  private func withoutPrompt(_ query: Query) -> Query {
    var query = query
    let context = chain.context()
    context.forbidInteraction()
    query.context = context
    return query
  }

  // MARK: load

  func load(_ name: KeyName, prompt: String?) async throws -> Data? {
    let key =
      name == .biometric ? try await released(name, prompt) : try read(withoutPrompt(item(name)))
    // Only of a device key: where it is locked the library waits, and an erased `session` must be gone.
    guard key == nil, name.rawValue.hasPrefix("device"), await !isReadable() else { return key }
    throw KeyFailure(.locked)
  }

  private func released(_ name: KeyName, _ prompt: String?) async throws -> Data? {
    // Before the prompt: the user need not prove anything for a key that is gone.
    let status = chain.copy(withoutPrompt(item(name))).status
    switch status {
    case KeychainStatus.notFound: return nil
    // The item is there, and needs the user.
    case KeychainStatus.success, KeychainStatus.interactionNotAllowed: break
    default: throw KeyFailure(KeyResult(status: status))
    }
    // An LAContext raises an exception if its reason is empty.
    guard let prompt, !prompt.isEmpty else { throw KeyFailure(.cancelled) }
    let context = chain.context()
    // What was released once must not be used again.
    defer { context.invalidate() }
    let code = await withTaskCancellationHandler {
      await context.evaluate(Self.control, reason: prompt)
    } onCancel: {
      context.invalidate()
    }
    let result = KeyResult(prompt: code)
    guard result == .ok else { throw KeyFailure(result) }
    guard !Task.isCancelled else { throw KeyFailure(.cancelled) }
    var query = item(name)
    query.context = context
    // Enrolling a finger or a face may have removed the item.
    return try read(query)
  }

  private func read(_ query: Query) throws -> Data? {
    var query = query
    query.returnsData = true
    let (status, data) = chain.copy(query)
    if status == KeychainStatus.notFound { return nil }
    guard status == KeychainStatus.success else {
      throw KeyFailure(KeyResult(status: status))
    }
    guard let data, data.count == Self.keyBytes else { throw KeyFailure(.failed) }
    return data
  }

  // MARK: save

  private static var control: KeychainControl {
    KeychainControl(accessible: .whenPasscodeSetThisDeviceOnly)
  }

  func save(_ name: KeyName, _ key: Data, protection: KeyProtection) throws {
    guard key.count == Self.keyBytes else { throw KeyFailure(.failed) }
    let status: Int32
    switch protection {
    case .device: status = saveForDevice(name, key)
    case .biometric: status = saveForUser(name, key)
    }
    if status == KeychainStatus.success { return }
    throw KeyFailure(protection == .biometric ? reason(of: status) : refusal(status))
  }

  /// What was saved is not missing: others have erased it each time.
  private func refusal(_ status: Int32) -> KeyResult {
    status == KeychainStatus.notFound ? .failed : KeyResult(status: status)
  }

  /// Never without a key: a process that ends in between leaves the old one or the new one.
  private func saveForDevice(_ name: KeyName, _ key: Data) -> Int32 {
    var fresh = item(name)
    fresh.accessible = .afterFirstUnlockThisDeviceOnly
    fresh.data = key
    let change = Query(accessible: fresh.accessible, data: key)
    var status = KeychainStatus.duplicate
    for _ in 0..<Self.attempts {
      status = chain.add(fresh)
      guard status == KeychainStatus.duplicate else { break }
      status = chain.update(withoutPrompt(item(name)), to: change)
      // Somebody else has erased the item.
      guard status == KeychainStatus.notFound else { break }
    }
    return status
  }

  /// To update a protected item can need a prompt; to delete it and to add one does not.
  private func saveForUser(_ name: KeyName, _ key: Data) -> Int32 {
    var fresh = item(name)
    fresh.control = Self.control
    fresh.data = key
    var status = KeychainStatus.duplicate
    for _ in 0..<Self.attempts where status == KeychainStatus.duplicate {
      status = chain.delete(item(name))
      guard [KeychainStatus.success, KeychainStatus.notFound].contains(status) else { break }
      status = chain.add(fresh)
    }
    return status
  }

  /// Why the Keychain takes no protected item; its status does not say it.
  private func reason(of status: Int32) -> KeyResult {
    let result = KeyResult(status: status)
    guard result == .failed else { return result }
    let context = chain.context()
    defer { context.invalidate() }
    guard let problem = context.biometryProblem() else { return result }
    let cause = KeyResult(prompt: problem)
    return [.notEnrolled, .unavailable].contains(cause) ? cause : result
  }

  // MARK: erase

  func erase(_ name: KeyName) throws {
    let status = chain.delete(item(name))
    guard ![KeychainStatus.success, KeychainStatus.notFound].contains(status) else { return }
    throw KeyFailure(KeyResult(status: status))
  }
}

/// What Apple's Keychain and prompts answer (docs/platforms.md has the tables).
extension KeyResult {
  /// The result of a call of the Keychain. Only what is known to mean it is `notFound`: the library offers the sign-in
  /// where the device key is not found.
  init(status: Int32) {
    switch status {
    case KeychainStatus.success: self = .ok
    case KeychainStatus.notFound: self = .notFound
    // Before the first unlock after a start
    case KeychainStatus.interactionNotAllowed: self = .locked
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
