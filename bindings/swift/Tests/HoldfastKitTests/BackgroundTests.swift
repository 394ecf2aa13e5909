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
      try? await Task.sleep(for: .milliseconds(2))
    }
    return Task.isCancelled ? .failure(.cancelled) : await sender.send(request)
  }
}

@Suite(.timeLimit(.minutes(10))) struct BackgroundTests {
  private func queued(_ app: Holdfast) async throws -> String {
    try await app.networkReport(online: false)
    let id = try await app.visit()
    try await app.networkReport(online: true)
    return id
  }

  @Test func whatIsQueuedIsSentBeforeItReturns() async throws {
    let app = try await signedIn(try configuration(freshFolder()))
    let id = try await queued(app)
    #expect(try await app.syncInBackground())
    #expect(try await stored(id) == 1)
    await app.close()
  }

  @Test func aWorkerSendsWithoutAUser() async throws {
    let folder = try freshFolder()
    var app = try await signedIn(try configuration(folder))
    try await app.networkReport(online: false)
    let id = try await app.visit()
    try await app.sessionBackground()
    await app.close()
    struct NoNetwork: HTTPSender {
      func send(_ request: HttpRequest) async -> HTTPOutcome { .failure(.offline) }
    }
    // Without a network it says that something is left
    app = try await Holdfast(try configuration(folder, role: .worker), sender: NoNetwork())
    #expect(try await !app.syncInBackground())
    await app.close()
    app = try await Holdfast(try configuration(folder, role: .worker))
    #expect(try await app.syncInBackground())
    #expect(try await stored(id) == 1)
    // And the user may come
    #expect(app.screen == nil)
    try await app.sessionForeground()
    #expect(try await app.settled().screen == .home)
    await app.close()
  }

  @Test func withoutANetworkOrASessionSomethingIsLeft() async throws {
    let config = try configuration(freshFolder(), biometric: .required)
    let app = try await signedIn(config, keyStore: MemoryKeyStore())
    try await app.networkReport(online: false)
    let id = try await app.visit()
    #expect(try await !app.syncInBackground())
    try await app.sessionLock()
    try await app.networkReport(online: true)
    #expect(try await !app.syncInBackground())
    #expect(try await stored(id) == 0)
    await app.close()
  }

  @Test func aCancelledTaskSendsNothingMoreAndTheNextCallGoesOn() async throws {
    let sender = HoldingSender()
    let app = try await signedIn(try configuration(freshFolder()), sender: sender)
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

  @Test func aSuspendedAppIsReleasedAndCloses() async throws {
    var app: Holdfast? = try await signedIn(try configuration(freshFolder()))
    await app?.suspend()
    await app?.suspend()
    weak let released = app
    app = nil
    #expect(released == nil)
    let other = try await signedIn(try configuration(freshFolder()))
    await other.suspend()
    await other.close()
    await other.suspend()
  }
}
