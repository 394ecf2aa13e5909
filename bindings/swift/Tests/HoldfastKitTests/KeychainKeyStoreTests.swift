import Foundation
import Security
import Testing

@testable import HoldfastKit

private let first = Data(repeating: 1, count: 32)
private let second = Data(repeating: 2, count: 32)

private func refusal<Value>(_ body: () async throws -> Value) async -> KeyResult? {
  do {
    Issue.record("\(try await body())")
  } catch let failure as KeyFailure {
    return failure.result
  } catch {
    Issue.record("\(error)")
  }
  return nil
}

/// Apple's Keychain in memory (Tests/Apple), which no call may have show a prompt by itself.
@Suite(.serialized, .timeLimit(.minutes(2))) final class KeychainKeyStoreTests {
  let keychain = StandInKeychain()
  let store = KeychainKeyStore(service: "app")

  init() { StandInKeychain.current = keychain }

  private func save(_ name: KeyName, _ key: Data) async throws {
    try await store.save(name, key, protection: name == .biometric ? .biometric : .device)
  }

  /// A load whose prompt stays on the screen.
  private func loading() async throws -> Task<KeyResult?, Never> {
    try await save(.biometric, first)
    keychain.keepsPrompt = true
    return Task { [store] in await refusal { try await store.load(.biometric, prompt: "Unlock") } }
  }

  deinit { for misuse in keychain.misuses { Issue.record("\(misuse)") } }

  @Test("FIX-6: before the first unlock a device key that is not found is locked")
  func aMissingDeviceKeyIsLockedBeforeTheFirstUnlock() async throws {
    let locked = KeychainKeyStore(service: "app", isProtectedDataAvailable: { false })
    for name in [KeyName.device, KeyName(rawValue: "device_b")] {
      #expect(try await store.load(name, prompt: nil) == nil)
      #expect(await refusal { try await locked.load(name, prompt: nil) } == .locked)
    }
    // One that is found is there
    try await save(.device, first)
    #expect(try await locked.load(.device, prompt: nil) == first)
    // What was erased is gone, also while the device is locked
    #expect(try await locked.load(.session, prompt: nil) == nil)
    #expect(try await locked.load(.biometric, prompt: nil) == nil)
  }

  @Test(arguments: [KeyName.device, .session])
  func aKeyOfTheDeviceIsReadableAfterTheFirstUnlock(name: KeyName) async throws {
    try await save(name, first)
    let item = try #require(keychain.item(name.rawValue))
    #expect(item.accessible == kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly)
    #expect(item.enrolment == nil)
    keychain.isUnlocked = false
    #expect(try await store.load(name, prompt: nil) == first)
    #expect(keychain.prompts == [])
  }

  @Test func aKeyOfTheUserIsForThoseWhoAreEnrolledNow() async throws {
    try await save(.biometric, first)
    let item = try #require(keychain.item("biometric"))
    #expect(item.accessible == kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
    #expect(item.enrolment != nil)
    #expect(keychain.prompts == [])
  }

  @Test func aKeyOfTheDeviceIsUpdatedAndNeverAbsent() async throws {
    try await save(.device, first)
    keychain.forgetCalls()
    try await save(.device, second)
    #expect(keychain.calls == [.add, .update])
    #expect(try await store.load(.device, prompt: nil) == second)
  }

  @Test func anItemWithAnotherAccessibilityGetsOurs() async throws {
    keychain.put(
      "device", .init(data: first, accessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly))
    try await save(.device, second)
    #expect(keychain.item("device")?.accessible == kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly)
  }

  @Test func aKeyOfTheUserIsDeletedAndAddedWithoutAPrompt() async throws {
    try await save(.biometric, first)
    keychain.forgetCalls()
    try await save(.biometric, second)
    #expect(keychain.calls == [.delete, .add])
    #expect(keychain.item("biometric")?.data == second)
  }

  @Test func aKeyThatAnotherProcessAddsMeanwhileIsReplaced() async throws {
    keychain.before[.add] = { [keychain] in
      keychain.put("biometric", .init(data: first, enrolment: 1))
    }
    try await save(.biometric, second)
    #expect(keychain.item("biometric")?.data == second)
    #expect(keychain.calls == [.delete, .add, .delete, .add])
  }

  @Test func aKeyThatAnotherProcessErasesMeanwhileIsAdded() async throws {
    try await save(.device, first)
    keychain.before[.update] = { [keychain] in keychain.put("device", nil) }
    try await save(.device, second)
    #expect(keychain.item("device")?.data == second)
  }

  @Test func savingEndsAlsoIfOthersNeverDo() async throws {
    keychain.fail(.add, -25299, -25299, -25299, -25299)
    #expect(await refusal { try await save(.biometric, first) } == .failed)
    keychain.fail(.add, -25299, -25299, -25299, -25299)
    #expect(await refusal { try await save(.device, first) } == .failed)
  }

  @Test func anItemThatOnlyTheUserCanUpdateIsNotAskedFor() async throws {
    keychain.put("device", .init(data: first, enrolment: 1))
    #expect(await refusal { try await save(.device, second) } == .locked)
    #expect(keychain.item("device")?.data == first)
  }

  @Test(arguments: [
    (KeyName.device, Int32(-25308), KeyResult.locked), (.device, -34018, .failed),
    (.device, -25291, .failed), (.biometric, -25308, .locked), (.biometric, -34018, .failed),
    (.biometric, -128, .cancelled), (.biometric, -25293, .failed),
  ])
  func aStatusOfAddHasItsResult(name: KeyName, status: Int32, result: KeyResult) async throws {
    keychain.fail(.add, status)
    #expect(await refusal { try await save(name, first) } == result)
    #expect(keychain.count == 0)
  }

  @Test func anOldKeyThatCannotBeDeletedStays() async throws {
    try await save(.biometric, first)
    keychain.fail(.delete, -25308)
    #expect(await refusal { try await save(.biometric, second) } == .locked)
    #expect(keychain.item("biometric")?.data == first)
  }

  @Test func aDeviceWithoutBiometricsSaysSo() async throws {
    keychain.removeEnrolment()
    #expect(await refusal { try await save(.biometric, first) } == .notEnrolled)
    keychain.removePasscode()
    #expect(await refusal { try await save(.biometric, first) } == .notEnrolled)
    // Other keys need none.
    try await save(.device, first)
  }

  // MARK: load

  @Test func aPromptReleasesTheKeyOnce() async throws {
    try await save(.biometric, first)
    #expect(try await store.load(.biometric, prompt: "Unlock visits") == first)
    #expect(keychain.prompts == ["Unlock visits"])
    #expect(try await store.load(.biometric, prompt: "Again") == first)
    #expect(keychain.prompts == ["Unlock visits", "Again"])
  }

  @Test(arguments: [nil, ""])
  func withoutATextThereIsNoPrompt(prompt: String?) async throws {
    #expect(try await store.load(.biometric, prompt: prompt) == nil)
    try await save(.biometric, first)
    #expect(await refusal { try await store.load(.biometric, prompt: prompt) } == .cancelled)
    #expect(keychain.prompts == [])
  }

  @Test func anErasedKeyIsNotFoundWithoutAPrompt() async throws {
    for name in [KeyName.device, .session, .biometric] {
      try await save(name, first)
      try await store.erase(name)
      try await store.erase(name)
      #expect(try await store.load(name, prompt: nil) == nil)
    }
    #expect(try await store.load(.biometric, prompt: "Unlock") == nil)
    #expect(keychain.prompts == [])
  }

  @Test(arguments: [(-1, KeyResult.failed), (-2, .cancelled), (-8, .lockoutPermanent)])
  func aPromptThatFailsReleasesNothing(code: Int, result: KeyResult) async throws {
    try await save(.biometric, first)
    keychain.answer = code
    keychain.forgetCalls()
    #expect(await refusal { try await store.load(.biometric, prompt: "Unlock") } == result)
    // One look for the item, and none at it.
    #expect(keychain.calls == [.copy])
    #expect(keychain.item("biometric")?.data == first)
  }

  @Test func anEnrolmentTakesTheKeyAway() async throws {
    try await save(.biometric, first)
    keychain.enrol()
    #expect(try await store.load(.biometric, prompt: "Unlock") == nil)
    // And a new one can be saved.
    try await save(.biometric, second)
    #expect(try await store.load(.biometric, prompt: "Unlock") == second)
  }

  @Test func removingThePasscodeTakesTheKeyAwayAndLeavesTheOthers() async throws {
    try await save(.device, first)
    try await save(.biometric, second)
    keychain.removePasscode()
    #expect(try await store.load(.biometric, prompt: "Unlock") == nil)
    #expect(try await store.load(.device, prompt: nil) == first)
    #expect(keychain.prompts == [])
  }

  @Test func beforeTheFirstUnlockEverythingIsLockedAndNothingIsNotFound() async throws {
    try await save(.device, first)
    try await save(.biometric, second)
    keychain.wasUnlocked = false
    keychain.isUnlocked = false
    #expect(await refusal { try await store.load(.device, prompt: nil) } == .locked)
    #expect(await refusal { try await store.load(.biometric, prompt: nil) } == .cancelled)
    #expect(await refusal { try await store.load(.biometric, prompt: "Unlock") } == .cancelled)
    #expect(keychain.prompts == [])
  }

  @Test func aKeychainThatRefusesThisAppIsNoEmptyKeychain() async throws {
    keychain.isEntitled = false
    #expect(await refusal { try await store.load(.device, prompt: nil) } == .failed)
    #expect(await refusal { try await store.load(.biometric, prompt: "Unlock") } == .failed)
    #expect(await refusal { try await store.erase(.device) } == .failed)
    #expect(await refusal { try await save(.device, first) } == .failed)
    #expect(keychain.prompts == [])
  }

  @Test func aCancelledTaskEndsThePrompt() async throws {
    let loading = try await loading()
    while keychain.prompts.isEmpty { await Task.yield() }
    loading.cancel()
    #expect(await loading.value == .cancelled)
  }

  @Test func aTaskThatIsCancelledAsTheUserAnswersGetsNoKey() async throws {
    let loading = try await loading()
    keychain.with { (keychain.onAnswer, keychain.keepsPrompt) = ({ loading.cancel() }, false) }
    #expect(await loading.value == .cancelled)
    #expect(keychain.prompts == ["Unlock"])
  }

  @Test func aLockWhileTheUserAnswersReleasesNothing() async throws {
    let loading = try await loading()
    while keychain.prompts.isEmpty { await Task.yield() }
    // The device is locked between the prompt and the reading.
    keychain.with { (keychain.isUnlocked, keychain.keepsPrompt) = (false, false) }
    #expect(await loading.value == .locked)
  }

  @Test(arguments: [31, 0, 33]) func aKeyOfAnotherLengthIsNoKey(count: Int) async throws {
    keychain.put("device", .init(data: Data(count: count)))
    #expect(await refusal { try await store.load(.device, prompt: nil) } == .failed)
    keychain.forgetCalls()
    #expect(await refusal { try await save(.device, Data(count: count)) } == .failed)
    #expect(keychain.calls == [])
  }

  @Test func servicesAndGroupsAreApart() async throws {
    try await save(.device, first)
    let other = KeychainKeyStore(service: "other")
    let shared = KeychainKeyStore(service: "app", accessGroup: "team.shared")
    #expect(try await other.load(.device, prompt: nil) == nil)
    #expect(try await shared.load(.device, prompt: nil) == nil)
    try await other.save(.device, second, protection: .device)
    try await shared.erase(.device)
    #expect(try await store.load(.device, prompt: nil) == first)
  }
}

@Suite struct KeychainAnswersTests {
  @Test func onlyItemNotFoundIsNotFound() {
    let found = (-35_000...1000).filter { KeyResult(status: $0) == .notFound }
    #expect(found == [-25300])
  }

  @Test(arguments: [
    (nil, KeyResult.ok), (-1, .failed), (-2, .cancelled), (-3, .cancelled),
    (-4, .cancelled), (-9, .cancelled), (-1004, .cancelled), (-8, .lockoutPermanent),
    (-5, .notEnrolled), (-7, .notEnrolled), (-6, .unavailable), (-12, .unavailable),
    (-13, .unavailable), (-10, .failed),
  ])
  func aPromptHasItsResult(code: Int?, result: KeyResult) {
    #expect(KeyResult(prompt: code) == result)
  }
}
