#if canImport(Security) && canImport(LocalAuthentication)
  import Foundation
  import LocalAuthentication
  import Security

  /// Apple's Keychain, with Face ID or Touch ID for `biometric`. Keys stay on this device, and outlive
  /// the app: a new installation finds the old `device` key, and uses it.
  ///
  /// Its rules are tested on Linux, over a stand-in for the Keychain. This file was compiled there against
  /// declarations written by hand; it was never compiled against Apple's modules, and never run.
  public struct KeychainKeyStore: KeyStore {
    private let rules: KeychainRules<SystemKeychain>

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
      rules = KeychainRules(
        chain: SystemKeychain(), service: service, group: accessGroup,
        isReadable: isProtectedDataAvailable)
    }

    public func load(_ name: KeyName, prompt: String?) async throws -> Data? {
      try await rules.load(name, prompt: prompt)
    }

    public func save(_ name: KeyName, _ key: Data, protection: KeyProtection) async throws {
      try rules.save(name, key, protection: protection)
    }

    public func erase(_ name: KeyName) async throws { try rules.erase(name) }
  }

  /// Translates queries, and decides nothing.
  struct SystemKeychain: Keychain {
    func context() -> SystemContext { SystemContext() }

    func add(_ item: KeychainQuery<SystemContext>) -> Int32 {
      guard let query = item.found else { return errSecParam }
      return SecItemAdd(query as CFDictionary, nil)
    }

    func update(
      _ found: KeychainQuery<SystemContext>, to changed: KeychainQuery<SystemContext>
    ) -> Int32 {
      guard let query = found.found, let change = changed.attributes else { return errSecParam }
      return SecItemUpdate(query as CFDictionary, change as CFDictionary)
    }

    func delete(_ found: KeychainQuery<SystemContext>) -> Int32 {
      guard let query = found.found else { return errSecParam }
      return SecItemDelete(query as CFDictionary)
    }

    func copy(_ found: KeychainQuery<SystemContext>) -> (status: Int32, data: Data?) {
      guard let query = found.found else { return (errSecParam, nil) }
      var result: CFTypeRef?
      let status = SecItemCopyMatching(query as CFDictionary, &result)
      return (status, result as? Data)
    }
  }

  extension KeychainQuery<SystemContext> {
    /// The item itself, and what is asked of it. Nil: the system makes no such access control.
    fileprivate var found: [String: Any]? {
      guard var query = attributes else { return nil }
      query[kSecClass as String] = kSecClassGenericPassword
      query[kSecUseDataProtectionKeychain as String] = true
      return query
    }

    fileprivate var attributes: [String: Any]? {
      var query: [String: Any] = [:]
      query[kSecAttrService as String] = service
      query[kSecAttrAccount as String] = account
      query[kSecAttrAccessGroup as String] = group
      query[kSecValueData as String] = data
      if let accessible { query[kSecAttrAccessible as String] = accessible.constant }
      if let control {
        guard let made = control.made else { return nil }
        query[kSecAttrAccessControl as String] = made
      }
      if returnsData { query[kSecReturnData as String] = true }
      if let context { query[kSecUseAuthenticationContext as String] = context.context }
      return query
    }
  }

  extension KeychainAccessible {
    fileprivate var constant: CFString {
      switch self {
      case .afterFirstUnlockThisDeviceOnly: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
      case .whenPasscodeSetThisDeviceOnly: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly
      }
    }
  }

  extension KeychainControl {
    fileprivate var made: SecAccessControl? {
      SecAccessControlCreateWithFlags(nil, accessible.constant, .biometryCurrentSet, nil)
    }
  }

  /// An LAContext may be used from any thread.
  final class SystemContext: KeychainContext, @unchecked Sendable {
    fileprivate let context = LAContext()

    func forbidInteraction() { context.interactionNotAllowed = true }

    func evaluate(_ control: KeychainControl, reason: String) async -> Int? {
      guard let control = control.made else { return 0 }
      // No button for the passcode, which cannot release the key.
      context.localizedFallbackTitle = ""
      return await withCheckedContinuation { continuation in
        context.evaluateAccessControl(control, operation: .useItem, localizedReason: reason) {
          continuation.resume(returning: $0 ? nil : SystemContext.code(of: $1))
        }
      }
    }

    func biometryProblem() -> Int? {
      var error: NSError?
      let can = context.canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics, error: &error)
      return can ? nil : SystemContext.code(of: error)
    }

    func invalidate() { context.invalidate() }

    private static func code(of error: (any Error)?) -> Int {
      (error as? LAError)?.code.rawValue ?? 0
    }
  }
#endif
