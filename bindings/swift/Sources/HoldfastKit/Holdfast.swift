import CHoldfast

/// An open data folder. Its calls run one after another on a thread of their own, since they write to disk and may
/// wait for the key store. The library's requests are sent while it is open.
///
/// Keep a reference to it, and call `close()` at the end. One that is released closes itself.
public final class Holdfast: Sendable {
  private let handle: Handle
  private let driver: Driver
  private let reader: NewsReader
  private let keys: KeyFunctions?

  /// The reply of holdfast_open(): the version, whether damaged files were set aside, the first screen.
  public var opened: OpenReply { handle.opened }

  /// Open a data folder; create it if it is absent. Without a key store the configuration names `file`.
  public init(
    _ config: Config, keyStore: (any KeyStore)? = nil, sender: any HTTPSender = URLSessionSender()
  ) async throws(HoldfastError) {
    var config = config
    if keyStore != nil { config.keystore = nil }
    keys = keyStore.map { KeyFunctions($0) }
    handle = try await Handle.open(config, keys)
    driver = Driver(handle, sender)
    reader = NewsReader(handle)
  }

  deinit {
    driver.stop()
    handle.abandon()
  }

  func ask<Reply: Decodable & Sendable>(
    _ name: String, _ request: Request = [:]
  ) async throws(HoldfastError) -> Reply {
    if let keys {
      // Each would wait for the other.
      guard !keys.isServing else { throw .reentered }
      if ["session_lock", "session_logout"].contains(name) { keys.withdraw() }
    }
    driver.goOn()
    return try await handle.run { [handle] () throws(HoldfastError) in
      try handle.call(name, request)
    }
  }

  func ask(_ name: String, _ request: Request = [:]) async throws(HoldfastError) {
    let _: Nothing = try await ask(name, request)
  }

  /// Open the session with the key `biometric`. The key store shows its prompt first, and what came of it is the
  /// outcome. A lock, a logout, another unlock and `close()` take the prompt back: it counts as cancelled then.
  public func sessionUnlock() async throws(HoldfastError) {
    guard let keys else { return try await ask("session_unlock") }
    guard !keys.isServing else { throw .reentered }
    driver.goOn()
    try await keys.unlock(handle)
  }

  // MARK: What the app gets

  /// The newest screen that the reader has got; at first that of the reply of open.
  public var screen: Decision? { reader.screen }

  /// The next thing for the app: a screen to show, a notice, an answer, the state of sync; `wakeInMs` if nothing
  /// comes in `timeoutMs` (negative: no limit), or the task is cancelled; nil: the handle is closed. The first one
  /// is the first screen. Asking for the next thing acknowledges a notice; one that was not acknowledged comes again
  /// after a restart. One reader at a time: another one fails with `handle.busy`.
  public func next(timeoutMs: Int = -1) async throws(HoldfastError) -> Next? {
    try await reader.next(timeoutMs)
  }

  /// What `next` gives, one after another, until the handle is closed or the task is cancelled. It fails with errors
  /// that no later try can mend.
  public var news: News { News(reader: reader) }

  /// The next screen but `wait`, for instance the result of a sign-in. What else comes is kept for the reader; a
  /// notice among it counts as acknowledged.
  public func settled() async throws -> Decision {
    var others: [Next] = []
    defer { reader.keep(others) }
    for try await next in news {
      guard case .screen(let shown) = next else {
        others.append(next)
        continue
      }
      if shown.screen != .wait { return shown }
    }
    throw HoldfastError(withoutReply: HOLDFAST_CLOSED)
  }

  // MARK: In the background

  /// Send what is queued, in a background task of the system, and return when there is nothing to send for now.
  /// False: something is left, because there is no network, the server asks for time, or the session is locked; have
  /// the system start another task. Items that need the user do not count.
  ///
  /// Cancel the Swift task in the system's expiration handler: requests in flight are cancelled, as `suspend()` does,
  /// and the result is false.
  public func syncInBackground() async throws(HoldfastError) -> Bool {
    let isStarted: Bool
    do {
      isStarted = try await syncNow().started
    } catch {
      guard error.status == HOLDFAST_STATE else { throw error }
      return false
    }
    let isClean = await driver.idle()
    if Task.isCancelled {
      await driver.suspend()
      return false
    }
    do {
      let counts = try await syncStatus().counts
      return counts.pending + counts.sending + counts.waiting == 0
    } catch {
      // A worker may send, and not look into the queue.
      guard error.code == .sessionLocked else { throw error }
      return isStarted && isClean
    }
  }

  /// Cancel the requests in flight, and send nothing until the next call, because the system is about to suspend the
  /// process: a request that is sent after hours can end the session.
  public func suspend() async { await driver.suspend() }

  /// Cancel the requests in flight, and close: when it returns, the files are closed. It may be called twice; calls
  /// then fail with `handle.closed`.
  public func close() async {
    keys?.close()
    await driver.close()
    await handle.close()
  }
}
