import CHoldfast
import Foundation
import Testing

@testable import HoldfastKit

/// A key store that shows a prompt until the user answers or somebody takes it back.
private final class Prompting: KeyStore, @unchecked Sendable {
  private let lock = NSLock()
  private var keys: [KeyName: Data] = [:]
  private(set) var prompts = 0
  private(set) var onScreen = 0
  private(set) var most = 0
  private var keepsPrompt = false
  var refusal: KeyResult?
  var isStubborn = false
  /// What an erasure does before it erases.
  let before: @Sendable () async -> Void

  init(before: @escaping @Sendable () async -> Void = {}) { self.before = before }

  func with<Value>(_ body: (Prompting) -> Value) -> Value { lock.withLock { body(self) } }
  func keepPrompt(_ keeps: Bool) { with { $0.keepsPrompt = keeps } }

  func load(_ name: KeyName, prompt: String?) async throws -> Data? {
    let key = with { $0.keys[name] }
    guard name == .biometric, key != nil else { return key }
    guard prompt?.isEmpty == false else { throw KeyFailure(.cancelled) }
    with {
      ($0.prompts, $0.onScreen) = ($0.prompts + 1, $0.onScreen + 1)
      $0.most = max($0.most, $0.onScreen)
    }
    defer { with { $0.onScreen -= 1 } }
    while with({ $0.keepsPrompt }), !Task.isCancelled {
      try? await Task.sleep(for: .milliseconds(1))
    }
    if Task.isCancelled, !with({ $0.isStubborn }) {
      // The dialog takes its time to go.
      await Task.detached { for _ in 0..<1000 { await Task.yield() } }.value
      throw KeyFailure(.cancelled)
    }
    if let refusal = with({ $0.refusal }) { throw KeyFailure(refusal) }
    return key
  }

  func save(_ name: KeyName, _ key: Data, protection: KeyProtection) async throws {
    with { $0.keys[name] = key }
  }

  func erase(_ name: KeyName) async throws {
    await before()
    with { $0.keys[name] = nil }
  }

  /// Until the prompt of this number is on the screen.
  func shows(_ number: Int) async {
    while with({ $0.prompts < number || $0.onScreen == 0 }), !Task.isCancelled {
      await Task.yield()
    }
  }
}

@Suite(.timeLimit(.minutes(2))) struct KeyFunctionsTests {
  private func locked(_ keys: Prompting) async throws -> Holdfast {
    let config = try configuration(freshFolder(), biometric: .required)
    let app = try await signedIn(config, keyStore: keys)
    try await app.sessionLock()
    #expect(try await app.settled().screen == .unlock)
    return app
  }

  /// An unlock whose prompt is on the screen.
  private func unlocking(_ app: Holdfast, _ keys: Prompting) async -> Task<Void, any Error> {
    keys.keepPrompt(true)
    let number = keys.with { $0.prompts } + 1
    let task = Task { try await app.sessionUnlock() }
    await keys.shows(number)
    return task
  }

  @Test func otherCallsAndALockDoNotWaitForTheUser() async throws {
    let keys = Prompting()
    let app = try await locked(keys)
    let unlocking = await unlocking(app, keys)
    #expect(try await app.sessionStatus().state == .locked)
    // A lock takes the prompt back.
    try await app.sessionLock()
    try await unlocking.value
    let withdrawn = try await app.shown()
    #expect(withdrawn.message?.code == .biometricCancelled)
    #expect(withdrawn.canUnlock)
    #expect(keys.with { $0.onScreen } == 0)
    keys.keepPrompt(false)
    try await app.sessionUnlock()
    #expect(try await app.settled().screen == .home)
    await app.close()
  }

  @Test(arguments: [
    (KeyResult.cancelled, ScreenCode.biometricCancelled), (.failed, .biometricFailed),
    (.lockout, .biometricLockout), (.lockoutPermanent, .biometricLockoutPermanent),
    (.notEnrolled, .biometricNotEnrolled), (.unavailable, .biometricUnavailable),
    (.invalidated, .keyLost), (.locked, .biometricWithheld), (.notFound, .keyLost),
  ])
  func whatThePromptRefusesIsTheOutcome(result: KeyResult, reason: ScreenCode) async throws {
    let keys = Prompting()
    let app = try await locked(keys)
    keys.with { $0.refusal = result }
    try await app.sessionUnlock()
    #expect(try await app.shown().message?.code == reason)
    #expect(keys.with { $0.prompts } == 1)
    await app.close()
  }

  @Test func theLastOfSeveralUnlocksHasTheOnlyPrompt() async throws {
    let keys = Prompting()
    let app = try await locked(keys)
    var tasks: [Task<Void, any Error>] = []
    for _ in 1...3 { tasks.append(await unlocking(app, keys)) }
    for one in tasks.prefix(2) { try await one.value }
    #expect(try await app.shown().message?.code == .biometricCancelled)
    keys.keepPrompt(false)
    try await tasks[2].value
    #expect(try await app.settled().screen == .home)
    #expect(keys.with { $0.most } == 1)
    await app.close()
  }

  @Test func aPromptThatIgnoresItsWithdrawalOpensNothing() async throws {
    let keys = Prompting()
    let app = try await locked(keys)
    keys.with { $0.isStubborn = true }
    let unlocking = await unlocking(app, keys)
    try await app.sessionLock()
    try await unlocking.value
    #expect(try await app.shown().message?.code == .biometricCancelled)
    await app.close()
  }

  @Test func anUnlockThatTheAppCancelsTakesItsPromptBack() async throws {
    let keys = Prompting()
    let app = try await locked(keys)
    let unlocking = await unlocking(app, keys)
    unlocking.cancel()
    try await unlocking.value
    #expect(try await app.shown().message?.code == .biometricCancelled)
    await app.close()
  }

  @Test func closingTakesThePromptBack() async throws {
    let keys = Prompting()
    let app = try await locked(keys)
    let unlocking = await unlocking(app, keys)
    await app.close()
    // The outcome may reach the library before it is closed.
    _ = try? await unlocking.value
    #expect(keys.with { $0.onScreen } == 0)
    // Afterwards none is shown.
    let error = await #expect(throws: HoldfastError.self) { try await app.sessionUnlock() }
    #expect(error?.code == .handleClosed)
    #expect(keys.with { $0.prompts } == 1)
  }

  @Test func aKeyStoreThatCallsTheLibraryIsRefused() async throws {
    final class Calls: @unchecked Sendable {
      var app: Holdfast?
      var code: ErrorCode?
    }
    let calls = Calls()
    let keys = Prompting(before: {
      guard calls.app != nil else { return }
      let error = await #expect(throws: HoldfastError.self) { try await calls.app?.sessionStatus() }
      calls.code = error?.code
    })
    let config = try configuration(freshFolder(), biometric: .required)
    let app = try await signedIn(config, keyStore: keys)
    calls.app = app
    try await app.sessionLock()
    #expect(calls.code == .handleReentered)
    calls.app = nil
    await app.close()
  }

  @Test func aKeyStoreThatDoesNotAnswerHasFailed() async throws {
    let (ended, told) = AsyncStream<Void>.makeStream()
    let keys = Prompting(before: {
      while !Task.isCancelled { try? await Task.sleep(for: .milliseconds(1)) }
      told.yield()
    })
    let result = await Task.detached {
      let functions = KeyFunctions(keys, patienceS: 0.05).functions
      defer { functions.destroy(functions.context) }
      return functions.erase(functions.context, "session")
    }.value
    #expect(result == HOLDFAST_KEY_FAILED)
    // Its task is cancelled.
    for await _ in ended { break }
  }
}
