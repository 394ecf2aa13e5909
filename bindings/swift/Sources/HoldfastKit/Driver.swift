import CHoldfast
import Foundation

/// Takes the library's requests, sends them, and completes them. It does not know its `Holdfast`, so that one can be
/// released.
final class Driver: @unchecked Sendable {
  private let handle: Handle
  private let sender: any HTTPSender
  private let lock = NSLock()
  private var state = State()

  private struct State {
    var isClosing = false
    /// Takes requests; nil: suspended.
    var loop: Task<Void, Never>?
    var sending: [Int: Task<Void, Never>] = [:]
    /// How many requests got no answer of success.
    var failed = 0
  }

  init(_ handle: Handle, _ sender: any HTTPSender) {
    self.handle = handle
    self.sender = sender
    goOn()
  }

  private func with<Result>(_ body: (inout State) -> Result) -> Result {
    lock.withLock { body(&state) }
  }

  /// The app makes a call: take requests, if that was suspended.
  func goOn() {
    with { state in
      guard state.loop == nil, !state.isClosing else { return }
      state.loop = Task.detached { [self] in await follow() }
    }
  }

  private func follow() async {
    while !Task.isCancelled {
      do throws(HoldfastError) {
        if case .wakeInMs(let wakeMs) = try await take() {
          await handle.wait(HOLDFAST_NEXT_REQUESTS, forMs: wakeMs)
        }
      } catch {
        if error.status == HOLDFAST_CLOSED { return }
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  /// Take a request, and begin to send it.
  private func take() async throws(HoldfastError) -> Next {
    try await handle.run { [self] () throws(HoldfastError) in
      let next = try handle.take(HOLDFAST_NEXT_REQUESTS)
      if case .request(let request) = next { begin(request) }
      return next
    }
  }

  private func begin(_ request: HttpRequest) {
    with { state in
      // Known until it ends.
      state.sending[request.id] = Task.detached { [self] in
        let goesOn = with { $0.loop != nil && !$0.isClosing }
        let outcome = goesOn ? await sender.send(request) : .failure(.cancelled)
        await complete(request.id, outcome)
        with { state in
          if !outcome.isSuccess { state.failed += 1 }
          state.sending[request.id] = nil
        }
      }
    }
  }

  /// An answer that the library refuses as malformed has failed.
  private func complete(_ id: Int, _ outcome: HTTPOutcome) async {
    _ = try? await handle.run { [handle] () throws(HoldfastError) in
      do throws(HoldfastError) {
        let _: Nothing = try handle.call("complete", outcome.completing(id))
      } catch {
        guard error.status == HOLDFAST_INVALID else { throw error }
        let _: Nothing = try handle.call("complete", HTTPOutcome.failure(.refused).completing(id))
      }
    }
  }

  // MARK: The background and the end

  /// Wait until no request is under way and the library has none, or until the task is cancelled. The requests are
  /// cancelled with it. True: all requests succeeded.
  func idle() async -> Bool {
    let failed = with { $0.failed }
    await withTaskCancellationHandler {
      while with({ $0.loop != nil && !$0.isClosing }) {
        let tasks = with { Array($0.sending.values) }
        for task in tasks { await task.value }
        guard let next = try? await take() else { break }
        if case .wakeInMs = next, with({ $0.sending.isEmpty }) { break }
      }
    } onCancel: {
      stop()
    }
    return with { $0.failed == failed }
  }

  /// Send nothing until the next call of the app, and wait until what was under way has ended.
  func suspend() async {
    while case let tasks = stop(), !tasks.isEmpty {
      for task in tasks { await task.value }
    }
  }

  /// The next open sends the cancelled requests again.
  func close() async {
    with { $0.isClosing = true }
    await suspend()
  }

  /// Send nothing more, and cancel what is under way.
  @discardableResult func stop() -> [Task<Void, Never>] {
    let (loop, tasks) = with { state in
      defer { state.loop = nil }
      return (state.loop, Array(state.sending.values))
    }
    for task in tasks + [loop].compactMap({ $0 }) { task.cancel() }
    return tasks
  }
}

extension HTTPOutcome {
  fileprivate var isSuccess: Bool {
    if case .answer(let status, _, _) = self { (200..<300).contains(status) } else { false }
  }

  fileprivate func completing(_ id: Int) -> Request {
    switch self {
    case .answer(let status, let headers, let body):
      ["id": id, "status": status, "headers": headers, "body": body ?? JSON.null]
    case .failure(let error): ["id": id, "error": error]
    }
  }
}
