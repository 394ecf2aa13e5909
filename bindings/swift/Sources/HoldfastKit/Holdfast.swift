import CHoldfast

/// An open data folder. Its calls run one after another, never on the main actor, since they write to disk.
/// With a key store they have a thread of their own, where they may wait for it. Without one they run on
/// Swift's pool, which is faster: at most one thread of it is busy with them. The library's requests are
/// sent while it is open.
///
/// Keep a reference to it, and call `close()` at the end. One that is released closes itself.
public actor Holdfast {
  private let handle: Handle
  private let driver: Driver
  private let keys: KeyFunctions?

  /// The reply of holdfast_open(): the version, and whether damaged files were set aside.
  public nonisolated var opened: OpenReply { handle.opened }

  /// Open a data folder; create it if it is absent. Without a key store the configuration names `file`.
  public init(
    _ config: Config, keyStore: (any KeyStore)? = nil,
    sender: any HTTPSender = URLSessionSender()
  ) throws(HoldfastError) {
    var config = config
    if keyStore != nil { config.keystore = nil }
    keys = keyStore.map { KeyFunctions($0) }
    handle = try Handle(config, keys)
    driver = Driver(handle, sender)
  }

  deinit { driver.abandon() }

  func ask<Request: Encodable & Sendable, Reply: Readable & Sendable>(
    _ name: OperationName, _ request: Request
  ) async throws(HoldfastError) -> Reply {
    driver.goOn()
    let reply: Reply =
      if let keys {
        try await keys.call(handle, name, request)
      } else {
        try handle.call(name, request)
      }
    if let decision = reply.decided { driver.note(decision) }
    // A poll of the app's own gives it the events; nobody else would send the requests.
    if let polled = reply as? PollReply { driver.begin(polled) }
    return reply
  }

  func ask<Reply: Readable & Sendable>(_ name: OperationName) async throws(HoldfastError) -> Reply {
    try await ask(name, EmptyRequest())
  }

  /// The events, for one reader at a time; they end when the handle is closed. A decision that a reply
  /// has superseded is left out. Asking for the next event acknowledges the last one; a durable event
  /// that was not acknowledged comes again after a restart. A slow reader slows nothing else.
  public nonisolated var events: Events { Events(driver: driver) }

  /// The decision that follows, while the given one is `wait`; the library sends it in bounded time. It
  /// takes no event from `events`.
  public nonisolated func settled(_ decision: Decision) async throws(HoldfastError) -> Decision {
    var shown = decision
    while shown.screen == .wait {
      guard let next = await driver.decision(after: shown.number) else {
        throw driver.failure ?? .closed
      }
      shown = next
    }
    return shown
  }

  /// Send what is queued, in a background task of the system, and return when there is nothing to send
  /// for now. False: something is left, because there is no network, the server asks for time, or the
  /// session is locked; have the system start another task. Items that need the user do not count.
  ///
  /// It says of nobody that they are present, so it opens no locked session. Cancel the Swift task in the
  /// system's expiration handler: requests in flight are cancelled, as `suspend()` does, and the result is
  /// false.
  public nonisolated func syncInBackground() async throws(HoldfastError) -> Bool {
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
      return try await syncStatus().counts.unsent == 0
    } catch {
      // A process that the system has started may send, and not look into the queue.
      guard error.code == .sessionLocked else { throw error }
      return isStarted && isClean
    }
  }

  /// Cancel the requests in flight, and send nothing until the next call, because the system is about to
  /// suspend the process: a request that is sent after hours can end the session.
  public nonisolated func suspend() async { await driver.suspend() }

  /// Cancel the requests in flight, acknowledge the last events, and close. When it returns the files are
  /// closed, unless another task is inside a call. It may be called twice; calls then fail with
  /// `handle.closed`.
  public nonisolated func close() async {
    keys?.close()
    await driver.close()
  }
}

/// Somebody reads the events already.
public struct EventsHaveAReader: Error {}

/// The events of a handle.
public struct Events: AsyncSequence, Sendable {
  let driver: Driver

  public func makeAsyncIterator() -> Iterator { Iterator(driver) }

  public final class Iterator: AsyncIteratorProtocol {
    private let driver: Driver
    private let isReader: Bool
    private var last: Event?

    init(_ driver: Driver) {
      self.driver = driver
      isReader = driver.beginReading()
    }

    deinit { if isReader { driver.endReading() } }

    /// The next event; nil when the handle is closed or the task is cancelled. It fails with the error
    /// that stopped the polling, if any, and with `EventsHaveAReader`.
    public func next() async throws -> Event? {
      guard isReader else { throw EventsHaveAReader() }
      while let event = await driver.next(after: last) {
        last = event
        if !driver.isSuperseded(event) { return event }
      }
      last = nil
      if let failure = driver.failure { throw failure }
      return nil
    }
  }
}

private struct EmptyRequest: Encodable {}
