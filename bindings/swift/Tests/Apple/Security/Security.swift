// Apple's module Security, as far as KeychainKeyStore.swift uses it, written by hand from Apple's documentation: a
// Keychain in memory that behaves as the data protection keychain does, with its statuses, accessibility, access
// control and prompts.

import Foundation

public typealias OSStatus = Int32
public typealias CFString = String
public typealias CFDictionary = [String: Any]
public typealias CFTypeRef = Any
public typealias CFAllocator = AnyObject
public final class CFError {}

public enum SecAccessControlCreateFlags { case biometryCurrentSet }

public final class SecAccessControl {
  public let accessible: CFString; init(_ one: CFString) { accessible = one }
}

public let errSecSuccess: OSStatus = 0
public let errSecParam: OSStatus = -50
public let errSecDuplicateItem: OSStatus = -25299
public let errSecItemNotFound: OSStatus = -25300
public let errSecInteractionNotAllowed: OSStatus = -25308
public let kSecClass: CFString = "class"
public let kSecClassGenericPassword: CFString = "genp"
public let kSecAttrService: CFString = "svce"
public let kSecAttrAccount: CFString = "acct"
public let kSecAttrAccessGroup: CFString = "agrp"
public let kSecAttrAccessible: CFString = "pdmn"
public let kSecAttrAccessControl: CFString = "accc"
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
public let kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly: CFString = "akpu"
public let kSecValueData: CFString = "v_Data"
public let kSecReturnData: CFString = "r_Data"
public let kSecUseAuthenticationContext: CFString = "u_AuthCtx"
public let kSecUseDataProtectionKeychain: CFString = "nleg"

public typealias Found = UnsafeMutablePointer<CFTypeRef?>?
private var keychain: StandInKeychain { .current }

public func SecItemAdd(_ item: CFDictionary, _: Found) -> OSStatus { keychain.add(item) }
public func SecItemDelete(_ found: CFDictionary) -> OSStatus { keychain.delete(found) }
public func SecItemUpdate(_ found: CFDictionary, _ change: CFDictionary) -> OSStatus {
  keychain.update(found, change)
}
public func SecItemCopyMatching(_ found: CFDictionary, _ result: Found) -> OSStatus {
  keychain.copy(found, result)
}

public func SecAccessControlCreateWithFlags(
  _ allocator: CFAllocator?, _ protection: CFString, _ flags: SecAccessControlCreateFlags,
  _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { SecAccessControl(protection) }

/// What LAContext is to the Keychain.
open class StandInContext {
  public enum State { case fresh, forbidden, released, invalid }
  public let keychain = StandInKeychain.current
  public var state = State.fresh

  public init() {}
  deinit { if state == .released { keychain.misuse("what was released once could be used again") } }
}

public final class StandInKeychain: @unchecked Sendable {
  /// The one that the functions use.
  public nonisolated(unsafe) static var current = StandInKeychain()

  public struct Item {
    public var data: Data
    public var accessible: CFString
    /// The enrolment that may use it; nil: no access control.
    public var enrolment: Int?
    public init(
      data: Data, accessible: CFString = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      enrolment: Int? = nil
    ) {
      (self.data, self.accessible, self.enrolment) = (data, accessible, enrolment)
    }
  }

  public enum Call: Hashable { case add, update, delete, copy }

  private let lock = NSRecursiveLock()
  private var items: [[String]: Item] = [:]
  /// Statuses that a call returns instead of doing anything, in order.
  private var failures: [Call: [OSStatus]] = [:]
  private var enrolment = 1
  private var isEnrolled = true
  private var hasPasscode = true

  /// Whether the device was unlocked since it started, and whether it is now.
  public var wasUnlocked = true
  public var isUnlocked = true
  public var isEntitled = true
  /// What the user does at the prompt: the code of an LAError; nil: the right finger.
  public var answer: Int?
  /// The user does nothing: the prompt stays until its context is invalidated.
  public var keepsPrompt = false
  /// The prompt has just ended.
  public var onAnswer: (@Sendable () -> Void)?
  /// Somebody else does something at this moment.
  public var before: [Call: @Sendable () -> Void] = [:]
  public private(set) var prompts: [String] = []
  public private(set) var calls: [Call] = []
  /// What no app may do.
  public private(set) var misuses: [String] = []

  public init() {}

  public func with<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }
  public func misuse(_ what: String) { with { misuses.append(what) } }
  public func fail(_ call: Call, _ statuses: OSStatus...) { with { failures[call] = statuses } }
  public func item(_ account: String) -> Item? { with { items[["app", account, ""]] } }
  public func put(_ account: String, _ item: Item?) { with { items[["app", account, ""]] = item } }
  public var count: Int { with { items.count } }
  public func forgetCalls() { with { calls = [] } }

  // MARK: What the user does in the settings

  /// Enrol a finger or a face: access controls for the current set lose their items.
  public func enrol() { with { (enrolment, isEnrolled) = (enrolment + 1, true) } }
  public func removeEnrolment() { with { (enrolment, isEnrolled) = (enrolment + 1, false) } }
  public func removePasscode() {
    with {
      (enrolment, isEnrolled, hasPasscode) = (enrolment + 1, false, false)
      let lost = kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly
      items = items.filter { $0.value.accessible != lost }
    }
  }

  // MARK: Calls

  fileprivate func add(_ item: CFDictionary) -> OSStatus {
    calling(.add, item) { key in
      let control = item[kSecAttrAccessControl] as? SecAccessControl
      // An access control has its own accessibility.
      guard let data = item[kSecValueData] as? Data, item[kSecReturnData] == nil,
        let accessible = control?.accessible ?? item[kSecAttrAccessible] as? CFString,
        control == nil || item[kSecAttrAccessible] == nil
      else { return errSecParam }
      guard isReadable(accessible) else { return errSecInteractionNotAllowed }
      // Without biometrics no access control for them.
      if control != nil, !hasPasscode || !isEnrolled { return -25293 }
      guard items[key] == nil else { return errSecDuplicateItem }
      items[key] = Item(
        data: data, accessible: accessible, enrolment: control == nil ? nil : enrolment)
      return errSecSuccess
    }
  }

  fileprivate func update(_ found: CFDictionary, _ change: CFDictionary) -> OSStatus {
    calling(.update, found) { key in
      guard asksOnly(found), change[kSecAttrService] == nil, change[kSecClass] == nil,
        let data = change[kSecValueData] as? Data,
        let accessible = change[kSecAttrAccessible] as? CFString
      else { return errSecParam }
      guard let item = items[key] else { return errSecItemNotFound }
      let status = admitted(item, found)
      if status == errSecSuccess {
        items[key] = Item(data: data, accessible: accessible, enrolment: item.enrolment)
      }
      return status
    }
  }

  fileprivate func delete(_ found: CFDictionary) -> OSStatus {
    calling(.delete, found) { key in
      guard asksOnly(found) else { return errSecParam }
      return items.removeValue(forKey: key) == nil ? errSecItemNotFound : errSecSuccess
    }
  }

  fileprivate func copy(_ found: CFDictionary, _ result: Found) -> OSStatus {
    calling(.copy, found) { key in
      guard found[kSecValueData] == nil, found[kSecAttrAccessible] == nil else {
        return errSecParam
      }
      guard let item = items[key] else { return errSecItemNotFound }
      // Without the data, an item is found without the user.
      guard found[kSecReturnData] != nil else {
        return isReadable(item.accessible) ? errSecSuccess : errSecInteractionNotAllowed
      }
      let status = admitted(item, found)
      if status == errSecSuccess { result?.pointee = item.data }
      return status
    }
  }

  private func asksOnly(_ found: CFDictionary) -> Bool {
    found[kSecValueData] == nil && found[kSecReturnData] == nil
  }

  private func calling(
    _ call: Call, _ query: CFDictionary, _ body: ([String]) -> OSStatus
  ) -> OSStatus {
    with { before.removeValue(forKey: call) }?()
    return with {
      calls.append(call)
      if failures[call]?.isEmpty == false { return failures[call]?.removeFirst() ?? 0 }
      guard isEntitled else { return -34018 }  // errSecMissingEntitlement
      guard query[kSecClass] as? CFString == kSecClassGenericPassword,
        query[kSecUseDataProtectionKeychain] as? Bool == true,
        let service = query[kSecAttrService] as? String,
        let account = query[kSecAttrAccount] as? String
      else { return errSecParam }
      return body([service, account, query[kSecAttrAccessGroup] as? String ?? ""])
    }
  }

  private func isReadable(_ accessible: CFString) -> Bool {
    wasUnlocked && (isUnlocked || accessible == kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly)
  }

  private func admitted(_ item: Item, _ query: CFDictionary) -> OSStatus {
    guard isReadable(item.accessible) else { return errSecInteractionNotAllowed }
    guard let made = item.enrolment else { return errSecSuccess }
    guard made == enrolment else { return errSecItemNotFound }
    switch (query[kSecUseAuthenticationContext] as? StandInContext)?.state {
    case .released: return errSecSuccess
    case .forbidden: return errSecInteractionNotAllowed
    case .fresh, nil:
      misuse("a call would show a prompt by itself")
      return -128
    case .invalid: return -25293
    }
  }

  // MARK: Prompts

  /// Shows a prompt until the user answers: the code of an LAError, or nil.
  public func prompt(_ context: StandInContext, _ reason: String) -> Int? {
    // Apple raises an exception.
    precondition(!reason.isEmpty, "a prompt without a reason")
    if let problem = biometryProblem { return problem }
    with { prompts.append(reason) }
    while with({ keepsPrompt && context.state != .invalid }) { usleep(1000) }
    let code: Int? = with {
      if context.state == .invalid { return -9 }  // appCancel
      if answer == nil { context.state = .released }
      return answer
    }
    with { onAnswer }?()
    return code
  }

  public var biometryProblem: Int? {
    with {
      if !hasPasscode { return -5 }
      if !isUnlocked || !wasUnlocked { return -1004 }
      return isEnrolled ? nil : -7
    }
  }
}
