import Foundation

/// The calls of Apple's Keychain and of its prompt that `KeychainRules` makes. The statuses are those
/// of `SecBase.h`, the codes those of `LAError`.
protocol Keychain: Sendable {
  associatedtype Context: KeychainContext

  /// A new `LAContext`.
  func context() -> Context
  /// SecItemAdd
  func add(_ item: KeychainQuery<Context>) -> Int32
  /// SecItemUpdate: the found item gets the accessibility and the data of the other query.
  func update(_ found: KeychainQuery<Context>, to: KeychainQuery<Context>) -> Int32
  /// SecItemDelete
  func delete(_ found: KeychainQuery<Context>) -> Int32
  /// SecItemCopyMatching
  func copy(_ found: KeychainQuery<Context>) -> (status: Int32, data: Data?)
}

/// An `LAContext`.
protocol KeychainContext: Sendable {
  /// interactionNotAllowed: what needs a prompt fails instead.
  func forbidInteraction()
  /// evaluateAccessControl(_:operation: .useItem, localizedReason:). Nil: success; otherwise the code of
  /// the LAError, or 0 for an error of another kind.
  func evaluate(_ control: KeychainControl, reason: String) async -> Int?
  /// canEvaluatePolicy(.deviceOwnerAuthenticationWithBiometrics). Nil: it can.
  func biometryProblem() -> Int?
  /// invalidate: it ends a prompt, and releases nothing from now on.
  func invalidate()
}

/// kSecAttrAccessible
enum KeychainAccessible: Sendable, Hashable {
  /// Readable after the first unlock, also in the background. It is in no backup of another device.
  case afterFirstUnlockThisDeviceOnly
  /// Readable while the device is unlocked; deleted when the passcode is removed.
  case whenPasscodeSetThisDeviceOnly
}

/// kSecAttrAccessControl: an accessibility, and `.biometryCurrentSet`.
struct KeychainControl: Sendable, Hashable {
  let accessible: KeychainAccessible
}

/// The dictionary of a call, without what is nil. Every one also has kSecClass
/// kSecClassGenericPassword, and kSecUseDataProtectionKeychain, which macOS needs for both protections.
struct KeychainQuery<Context: KeychainContext>: Sendable {
  /// kSecAttrService, kSecAttrAccount, kSecAttrAccessGroup
  var service: String?
  var account: String?
  var group: String?
  /// kSecAttrAccessible; without `control`, which has its own
  var accessible: KeychainAccessible?
  /// kSecAttrAccessControl
  var control: KeychainControl?
  /// kSecValueData
  var data: Data?
  /// kSecReturnData
  var returnsData = false
  /// kSecUseAuthenticationContext
  var context: Context?
}

/// The statuses that the rules tell apart.
enum KeychainStatus {
  static var success: Int32 { 0 }
  static var notFound: Int32 { -25300 }  // errSecItemNotFound
  static var duplicate: Int32 { -25299 }  // errSecDuplicateItem
  static var interactionNotAllowed: Int32 { -25308 }
}
