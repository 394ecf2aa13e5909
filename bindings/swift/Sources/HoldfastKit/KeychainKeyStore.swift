#if canImport(Security) && canImport(LocalAuthentication)
  import Foundation
  import LocalAuthentication
  import Security

  /// Apple's Keychain, with Face ID or Touch ID for `biometric`. Keys stay on this device, and outlive the app: a new
  /// installation finds the old `device` key, and uses it. Only the prompt of `load` can show anything: every call of
  /// the Keychain that could ask the user has a context that forbids it, or one that the user has released.
  ///
  /// It is tested on Linux, over a stand-in for Apple's modules written by hand (`Tests/Apple`). It was never compiled
  /// against Apple's modules, and never run there.
  public struct KeychainKeyStore: KeyStore {
    /// Other processes save and erase, too.
    private static var attempts: Int { 3 }
    private static var keyBytes: Int { 32 }

    private let service: String
    private let group: String?
    /// False: an item may be there and not be found, as before the first unlock.
    private let isReadable: @Sendable () async -> Bool

    /// `service` names the keys of one data folder: give each folder one of its own. `accessGroup` is for
    /// an app and its extensions that share the folder. On macOS the app must be signed with a keychain
    /// access group.
    ///
    /// `isProtectedDataAvailable`: on iOS pass `{ await UIApplication.shared.isProtectedDataAvailable }`. An app
    /// that the system starts before the first unlock may be told that items are not there which are: while
    /// this is false, a key that is not found is `locked`. Extensions have no such property, and pass nothing.
    public init(
      service: String = "holdfast", accessGroup: String? = nil,
      isProtectedDataAvailable: @escaping @Sendable () async -> Bool = { true }
    ) {
      (self.service, group, isReadable) = (service, accessGroup, isProtectedDataAvailable)
    }

    /// macOS needs kSecUseDataProtectionKeychain for both protections.
    private func item(_ name: KeyName) -> [String: Any] {
      var query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword,
        kSecUseDataProtectionKeychain as String: true,
        kSecAttrService as String: service, kSecAttrAccount as String: name.rawValue,
      ]
      query[kSecAttrAccessGroup as String] = group
      return query
    }

    private func withoutPrompt(_ name: KeyName) -> [String: Any] {
      let context = LAContext()
      context.interactionNotAllowed = true
      return item(name).merging([kSecUseAuthenticationContext as String: context]) { $1 }
    }

    fileprivate static var control: SecAccessControl? {
      SecAccessControlCreateWithFlags(
        nil, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .biometryCurrentSet, nil)
    }

    // MARK: load

    public func load(_ name: KeyName, prompt: String?) async throws -> Data? {
      let key =
        name == .biometric ? try await released(name, prompt) : try read(withoutPrompt(name))
      // Only of a device key: where it is locked the library waits, and an erased `session` must be gone.
      guard key == nil, name.rawValue.hasPrefix("device"), await !isReadable() else { return key }
      throw KeyFailure(.locked)
    }

    private func released(_ name: KeyName, _ prompt: String?) async throws -> Data? {
      // Before the prompt: the user need not prove anything for a key that is gone.
      let status = SecItemCopyMatching(withoutPrompt(name) as CFDictionary, nil)
      if status == errSecItemNotFound { return nil }
      // The item is there, and needs the user.
      guard [errSecSuccess, errSecInteractionNotAllowed].contains(status) else {
        throw KeyFailure(KeyResult(status: status))
      }
      // An LAContext raises an exception if its reason is empty.
      guard let prompt, !prompt.isEmpty else { throw KeyFailure(.cancelled) }
      let presence = Presence()
      // What was released once must not be used again.
      defer { presence.context.invalidate() }
      let code = await withTaskCancellationHandler {
        await presence.evaluate(prompt)
      } onCancel: {
        presence.context.invalidate()
      }
      let result = KeyResult(prompt: code)
      guard result == .ok else { throw KeyFailure(result) }
      guard !Task.isCancelled else { throw KeyFailure(.cancelled) }
      var query = item(name)
      query[kSecUseAuthenticationContext as String] = presence.context
      // Enrolling a finger or a face may have removed the item.
      return try read(query)
    }

    private func read(_ query: [String: Any]) throws -> Data? {
      let asked = query.merging([kSecReturnData as String: true]) { $1 }
      var found: CFTypeRef?
      let status = SecItemCopyMatching(asked as CFDictionary, &found)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess else { throw KeyFailure(KeyResult(status: status)) }
      guard let data = found as? Data, data.count == Self.keyBytes else {
        throw KeyFailure(.failed)
      }
      return data
    }

    // MARK: save

    public func save(_ name: KeyName, _ key: Data, protection: KeyProtection) async throws {
      guard key.count == Self.keyBytes else { throw KeyFailure(.failed) }
      let isForUser = protection == .biometric
      let status = isForUser ? saveForUser(name, key) : saveForDevice(name, key)
      if status == errSecSuccess { return }
      throw KeyFailure(isForUser ? reason(of: status) : refusal(status))
    }

    /// What was saved is not missing: others have erased it each time.
    private func refusal(_ status: OSStatus) -> KeyResult {
      status == errSecItemNotFound ? .failed : KeyResult(status: status)
    }

    /// Never without a key: a process that ends in between leaves the old one or the new one.
    private func saveForDevice(_ name: KeyName, _ key: Data) -> OSStatus {
      // Readable after the first unlock, also in the background, and in no backup of another device.
      let change: [String: Any] = [
        kSecAttrAccessible as String: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
        kSecValueData as String: key,
      ]
      var status = errSecDuplicateItem
      for _ in 0..<Self.attempts {
        status = SecItemAdd(item(name).merging(change) { $1 } as CFDictionary, nil)
        guard status == errSecDuplicateItem else { break }
        status = SecItemUpdate(withoutPrompt(name) as CFDictionary, change as CFDictionary)
        // Somebody else has erased the item.
        guard status == errSecItemNotFound else { break }
      }
      return status
    }

    /// To update a protected item can need a prompt; to delete it and to add one does not.
    private func saveForUser(_ name: KeyName, _ key: Data) -> OSStatus {
      guard let control = Self.control else { return errSecParam }
      var fresh = item(name)
      fresh[kSecAttrAccessControl as String] = control
      fresh[kSecValueData as String] = key
      var status = errSecDuplicateItem
      for _ in 0..<Self.attempts where status == errSecDuplicateItem {
        status = SecItemDelete(item(name) as CFDictionary)
        guard [errSecSuccess, errSecItemNotFound].contains(status) else { break }
        status = SecItemAdd(fresh as CFDictionary, nil)
      }
      return status
    }

    /// Why the Keychain takes no protected item; its status does not say it.
    private func reason(of status: OSStatus) -> KeyResult {
      let result = KeyResult(status: status)
      guard result == .failed else { return result }
      let context = LAContext()
      defer { context.invalidate() }
      var error: NSError?
      let can = context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: &error)
      let cause = KeyResult(prompt: can ? nil : Presence.code(of: error))
      return [.notEnrolled, .unavailable].contains(cause) ? cause : result
    }

    // MARK: erase

    public func erase(_ name: KeyName) async throws {
      let status = SecItemDelete(item(name) as CFDictionary)
      guard ![errSecSuccess, errSecItemNotFound].contains(status) else { return }
      throw KeyFailure(KeyResult(status: status))
    }
  }

  /// A prompt. An LAContext may be used from any thread.
  private final class Presence: @unchecked Sendable {
    let context = LAContext()

    /// Nil: success; otherwise the code of the LAError, or 0 for an error of another kind.
    func evaluate(_ reason: String) async -> Int? {
      guard let control = KeychainKeyStore.control else { return 0 }
      // No button for the passcode, which cannot release the key.
      context.localizedFallbackTitle = ""
      return await withCheckedContinuation { continuation in
        context.evaluateAccessControl(control, operation: .useItem, localizedReason: reason) {
          continuation.resume(returning: $0 ? nil : Presence.code(of: $1))
        }
      }
    }

    static func code(of error: (any Error)?) -> Int {
      guard let error = error.map({ $0 as NSError }), error.domain == LAErrorDomain else {
        return 0
      }
      return error.code
    }
  }
#endif
