import Foundation
import Testing

@testable import HoldfastKit

/// A Keychain in memory that behaves as Apple documents the data protection keychain: statuses,
/// accessibility, access control, prompts. A call that would show a prompt by itself is a failure.
final class StandInKeychain: Keychain, @unchecked Sendable {
  struct Identity: Hashable {
    let service: String?
    let account: String?
    let group: String?
  }

  struct Item {
    var data: Data
    var accessible: KeychainAccessible
    /// The enrolment that may use it; nil: no access control.
    var enrolment: Int?
  }

  enum Call: Hashable { case add, update, delete, copy }

  private let lock = NSRecursiveLock()
  private var items: [Identity: Item] = [:]
  /// Statuses that a call returns instead of doing anything, in order.
  private var failures: [Call: [Int32]] = [:]
  private var enrolment = 1
  private var isEnrolled = true
  private var hasPasscode = true

  /// Whether the device was unlocked since it started, and whether it is now.
  var wasUnlocked = true
  var isUnlocked = true
  var isEntitled = true
  /// What the user does at the prompt: the code of an LAError; nil: the right finger.
  var answer: Int?
  /// The user does nothing: the prompt stays until its context is invalidated.
  var keepsPrompt = false
  /// The prompt has just ended.
  var onAnswer: (@Sendable () -> Void)?
  /// Somebody else does something at this moment.
  var before: [Call: @Sendable () -> Void] = [:]
  private(set) var prompts: [String] = []
  private(set) var calls: [Call] = []

  func with<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

  func fail(_ call: Call, _ statuses: Int32...) { with { failures[call] = statuses } }
  func item(_ name: KeyName, service: String = "app") -> Item? {
    with { items[Identity(service: service, account: name.rawValue, group: nil)] }
  }
  var count: Int { with { items.count } }
  func forgetCalls() { with { calls = [] } }

  // MARK: What the user does in the settings

  /// Enrol a finger or a face: access controls for the current set lose their items.
  func enrol() { with { (enrolment, isEnrolled) = (enrolment + 1, true) } }
  func removeEnrolment() { with { (enrolment, isEnrolled) = (enrolment + 1, false) } }
  func removePasscode() {
    with {
      (enrolment, isEnrolled, hasPasscode) = (enrolment + 1, false, false)
      items = items.filter { $0.value.accessible != .whenPasscodeSetThisDeviceOnly }
    }
  }
  func put(_ name: KeyName, _ item: Item) {
    with { items[Identity(service: "app", account: name.rawValue, group: nil)] = item }
  }

  // MARK: Keychain

  func context() -> StandInContext { StandInContext(self) }

  func add(_ item: KeychainQuery<StandInContext>) -> Int32 {
    calling(.add) {
      guard let data = item.data, !item.returnsData, item.service != nil, item.account != nil
      else { return -50 }  // errSecParam
      // An access control has its own accessibility.
      guard let accessible = item.control?.accessible ?? item.accessible,
        item.control == nil || item.accessible == nil
      else { return -50 }
      guard isReadable(accessible) else { return -25308 }
      // Without biometrics no access control for them.
      if item.control != nil, !hasPasscode || !isEnrolled { return -25293 }
      guard items[item.identity] == nil else { return -25299 }
      items[item.identity] = Item(
        data: data, accessible: accessible, enrolment: item.control == nil ? nil : enrolment)
      return 0
    }
  }

  func update(
    _ found: KeychainQuery<StandInContext>, to change: KeychainQuery<StandInContext>
  ) -> Int32 {
    calling(.update) {
      guard found.data == nil, !found.returnsData, change.service == nil, change.context == nil
      else { return -50 }
      guard let item = items[found.identity] else { return -25300 }
      let status = admitted(item, found.context)
      guard status == 0 else { return status }
      if let data = change.data { items[found.identity]?.data = data }
      if let accessible = change.accessible { items[found.identity]?.accessible = accessible }
      return 0
    }
  }

  func delete(_ found: KeychainQuery<StandInContext>) -> Int32 {
    calling(.delete) {
      guard found.data == nil, !found.returnsData else { return -50 }
      return items.removeValue(forKey: found.identity) == nil ? -25300 : 0
    }
  }

  func copy(_ found: KeychainQuery<StandInContext>) -> (status: Int32, data: Data?) {
    var data: Data?
    let status = calling(.copy) {
      guard found.data == nil, found.accessible == nil, found.control == nil else { return -50 }
      guard let item = items[found.identity] else { return -25300 }
      // Without the data, an item is found without the user.
      guard found.returnsData else { return isReadable(item.accessible) ? 0 : -25308 }
      let status = admitted(item, found.context)
      if status == 0 { data = item.data }
      return status
    }
    return (status, data)
  }

  private func calling(_ call: Call, _ body: () -> Int32) -> Int32 {
    with { before.removeValue(forKey: call) }?()
    return with {
      calls.append(call)
      if failures[call]?.isEmpty == false { return failures[call]?.removeFirst() ?? 0 }
      guard isEntitled else { return -34018 }  // errSecMissingEntitlement
      return body()
    }
  }

  private func isReadable(_ accessible: KeychainAccessible) -> Bool {
    switch accessible {
    case .afterFirstUnlockThisDeviceOnly: wasUnlocked
    case .whenPasscodeSetThisDeviceOnly: wasUnlocked && isUnlocked
    }
  }

  private func admitted(_ item: Item, _ context: StandInContext?) -> Int32 {
    guard isReadable(item.accessible) else { return -25308 }
    guard let made = item.enrolment else { return 0 }
    guard made == enrolment else { return -25300 }
    switch context?.state {
    case .released: return 0
    case .forbidden: return -25308
    case .fresh, nil:
      Issue.record("a call would show a prompt by itself")
      return -128
    case .invalid: return -25293
    }
  }

  // MARK: Prompts

  fileprivate func prompt(_ context: StandInContext, _ reason: String) async -> Int? {
    // Apple raises an exception.
    precondition(!reason.isEmpty, "a prompt without a reason")
    if let problem = biometryProblem() { return problem }
    with { prompts.append(reason) }
    while with({ keepsPrompt && context.state != .invalid }) {
      try? await Task.sleep(nanoseconds: 1_000_000)
    }
    let code: Int? = with {
      if context.state == .invalid { return -9 }  // appCancel
      if answer == nil { context.state = .released }
      return answer
    }
    with { onAnswer }?()
    return code
  }

  fileprivate func biometryProblem() -> Int? {
    with {
      if !hasPasscode { return -5 }
      if !isUnlocked || !wasUnlocked { return -1004 }
      return isEnrolled ? nil : -7
    }
  }

  fileprivate func invalidate(_ context: StandInContext) {
    with { context.state = .invalid }
  }
}

final class StandInContext: KeychainContext, @unchecked Sendable {
  enum State { case fresh, forbidden, released, invalid }
  fileprivate let keychain: StandInKeychain
  fileprivate var state = State.fresh

  fileprivate init(_ keychain: StandInKeychain) { self.keychain = keychain }
  deinit { if state == .released { Issue.record("what was released once could be used again") } }

  func forbidInteraction() { keychain.with { state = .forbidden } }
  func evaluate(_ control: KeychainControl, reason: String) async -> Int? {
    control.accessible == .whenPasscodeSetThisDeviceOnly
      ? await keychain.prompt(self, reason) : 0
  }
  func biometryProblem() -> Int? { keychain.biometryProblem() }
  func invalidate() { keychain.invalidate(self) }
}

extension KeychainQuery<StandInContext> {
  fileprivate var identity: StandInKeychain.Identity {
    StandInKeychain.Identity(service: service, account: account, group: group)
  }
}
