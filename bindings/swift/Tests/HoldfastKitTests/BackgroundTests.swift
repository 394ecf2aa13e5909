import Foundation
import Testing

@testable import HoldfastKit

/// Counts the requests, and holds uploads until it is released.
final class HoldingSender: HTTPSender, @unchecked Sendable {
  private let sender = URLSessionSender()
  private let lock = NSLock()
  private var waiting = 0
  private var isHolding = false
  private var count = 0

  var held: Int { lock.withLock { waiting } }
  var sent: Int { lock.withLock { count } }
  func hold(_ holding: Bool) { lock.withLock { isHolding = holding } }

  func send(_ request: HttpRequest) async -> HTTPOutcome {
    let holds = lock.withLock {
      count += 1
      if isHolding { waiting += 1 }
      return isHolding
    }
    while holds, !Task.isCancelled, lock.withLock({ isHolding }) {
      try? await Task.sleep(nanoseconds: 2_000_000)
    }
    return Task.isCancelled ? .failure(.cancelled) : await sender.send(request)
  }
}

@Suite(.timeLimit(.minutes(10))) struct BackgroundTests {
  private func queued(_ app: Holdfast) async throws -> String {
    try await app.networkSet(online: false)
    let id = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 30]).id
    try await app.networkSet(online: true)
    return id
  }

  @Test func whatIsQueuedIsSentBeforeItReturns() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let id = try await queued(app)
    #expect(try await app.syncInBackground())
    #expect(try await stored(id) == 1)
    await app.close()
  }

  @Test func aProcessThatTheSystemStartsSendsWithoutAUser() async throws {
    let folder = try freshFolder()
    var app = try await signedIn(try configuration(folder))
    try await app.networkSet(online: false)
    let id = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 5]).id
    _ = try await app.sessionBackground()
    await app.close()
    app = try Holdfast(try configuration(folder))
    #expect(try await app.syncInBackground())
    #expect(try await stored(id) == 1)
    await app.close()
  }

  @Test func withoutANetworkSomethingIsLeft() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    try await app.networkSet(online: false)
    _ = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 5])
    #expect(try await !app.syncInBackground())
    await app.close()
  }

  @Test func aProcessThatTheSystemStartsWithoutANetworkSaysThatSomethingIsLeft() async throws {
    let folder = try freshFolder()
    var app = try await signedIn(try configuration(folder))
    try await app.networkSet(online: false)
    _ = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 5])
    await app.close()
    struct NoNetwork: HTTPSender {
      func send(_ request: HttpRequest) async -> HTTPOutcome { .failure(.offline) }
    }
    app = try Holdfast(try configuration(folder), sender: NoNetwork())
    #expect(try await !app.syncInBackground())
    await app.close()
  }

  @Test func aLockedSessionSendsNothing() async throws {
    let keys = MemoryKeyStore()
    var config = try configuration(freshFolder(), biometric: .required)
    config.keystore = nil
    let app = try await signedIn(config, keyStore: keys)
    try await app.networkSet(online: false)
    let id = try await app.queueAdd(kind: "activity", payload: ["type": "visit", "minutes": 5]).id
    _ = try await app.sessionLock()
    try await app.networkSet(online: true)
    #expect(try await !app.syncInBackground())
    #expect(try await stored(id) == 0)
    await app.close()
  }

  @Test func aCancelledTaskSendsNothingMoreAndTheNextCallGoesOn() async throws {
    let sender = HoldingSender()
    let app = try Holdfast(try configuration(freshFolder()), sender: sender)
    _ = try await app.settled(try await app.signInComplete(solo))
    let id = try await queued(app)
    sender.hold(true)
    let task = Task { try await app.syncInBackground() }
    while sender.held == 0 { await Task.yield() }
    task.cancel()
    #expect(try await !task.value)
    let sent = sender.sent
    // While the server answers others
    for _ in 0..<20 { #expect(try await stored(id) == 0) }
    #expect(sender.sent == sent)
    // The system lets the process go on.
    sender.hold(false)
    #expect(try await app.syncInBackground())
    #expect(try await stored(id) == 1)
    await app.close()
  }

  @Test func aSuspendedAppCloses() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    await app.suspend()
    await app.suspend()
    await app.close()
    #expect(try await app.settledOrNil() == nil)
    await app.suspend()
  }

  @Test func aSuspendedAppIsReleased() async throws {
    var app: Holdfast? = try await signedIn(try configuration(freshFolder()))
    await app?.suspend()
    weak let released = app
    app = nil
    #expect(released == nil)
  }
}

extension Holdfast {
  /// Nil: the handle is closed.
  fileprivate func settledOrNil() async throws -> Decision? {
    do { return try await sessionResume() } catch  where error.code == .handleClosed { return nil }
  }
}
