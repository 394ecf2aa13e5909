import CHoldfast
import Foundation

/// The functions of `holdfast_keystore` over a key store that may take its time. They wait for it, so
/// nothing that calls them may run on a thread of Swift's pool: the key store needs those.
final class KeyFunctions: @unchecked Sendable {
  /// How long a function waits. What comes later counts as `failed`.
  private static var patienceS: Double { 10 }
  /// The functions that a task carries out something for.
  @TaskLocal private static var serving: ObjectIdentifier?

  private let store: any KeyStore
  private let patienceS: Double
  /// The calls of the app, one after another.
  private let calls = DispatchQueue(label: "holdfast.calls")
  private let lock = NSLock()
  private var state = State()

  private struct State {
    /// The number of the last call that withdrew a prompt.
    var withdrawn = 0
    var isClosed = false
    var prompt: Task<Shown, Never>?
    /// The key that the user has released for the call on this thread.
    var released: (thread: Thread, key: ReleasedKey)?

    mutating func withdraw() -> Int {
      withdrawn += 1
      prompt?.cancel()
      return withdrawn
    }
  }

  private typealias Shown = (outcome: Outcome, key: ReleasedKey?)
  private typealias Answer = (result: KeyResult, key: Data?)

  /// A key that is zeroed when nobody needs it any more.
  private final class ReleasedKey: @unchecked Sendable {
    private(set) var data: Data
    init(_ data: Data) { self.data = data }
    deinit { data.resetBytes(in: data.startIndex..<data.endIndex) }
  }

  init(_ store: any KeyStore, patienceS: Double = KeyFunctions.patienceS) {
    self.store = store
    self.patienceS = patienceS
  }

  // MARK: What the library calls

  /// For holdfast_open(), which releases what is retained here.
  var functions: holdfast_keystore {
    holdfast_keystore(
      size: MemoryLayout<holdfast_keystore>.size,
      context: Unmanaged.passRetained(self).toOpaque(),
      load: { context, name, key, capacity, length in
        guard let (functions, name) = at(context, name), let key, let length else { return failed }
        let answer = functions.load(name)
        guard answer.result == .ok else { return answer.result.rawValue }
        guard let found = answer.key, found.count <= capacity else { return failed }
        found.copyBytes(to: key, count: found.count)
        length.pointee = found.count
        return KeyResult.ok.rawValue
      },
      save: { context, name, key, length, protection in
        guard let (functions, name) = at(context, name), let key,
          let protection = KeyProtection(rawValue: protection)
        else { return failed }
        let data = Data(bytes: key, count: length)
        return functions.wait {
          try await $0.save(name, data, protection: protection)
          return Data()
        }.result.rawValue
      },
      erase: { context, name in
        guard let (functions, name) = at(context, name) else { return failed }
        return functions.wait {
          try await $0.erase(name)
          return Data()
        }.result.rawValue
      },
      destroy: { context in
        if let context { Unmanaged<KeyFunctions>.fromOpaque(context).release() }
      })
  }

  private func load(_ name: KeyName) -> Answer {
    let released = lock.withLock { state.released }
    if name == .biometric, let released, released.thread === Thread.current {
      return (.ok, released.key.data)
    }
    return wait { try await $0.load(name, prompt: nil) }
  }

  private func wait(_ work: @escaping @Sendable (any KeyStore) async throws -> Data?) -> Answer {
    final class Box: @unchecked Sendable { var answer: Answer = (.failed, nil) }
    let (box, done) = (Box(), DispatchSemaphore(value: 0))
    let task = Task.detached { [self] in
      box.answer = await KeyFunctions.$serving.withValue(ObjectIdentifier(self)) {
        await answer(work)
      }
      done.signal()
    }
    if done.wait(timeout: .now() + patienceS) == .success { return box.answer }
    task.cancel()
    return (.failed, nil)
  }

  private func answer(_ work: (any KeyStore) async throws -> Data?) async -> Answer {
    do {
      let key = try await work(store)
      return (key == nil ? .notFound : .ok, key)
    } catch let failure as KeyFailure {
      return (failure.result == .ok ? .failed : failure.result, nil)
    } catch {
      return (Task.isCancelled ? .cancelled : .failed, nil)
    }
  }

  // MARK: What the app calls

  /// Make a call. An unlock shows its prompt first; an unlock, a lock and a logout take back the prompt of
  /// an unlock before, whose outcome is then `cancelled`.
  func call<Request: Encodable & Sendable, Reply: Readable & Sendable>(
    _ handle: Handle, _ name: OperationName, _ request: Request
  ) async throws(HoldfastError) -> Reply {
    // Each would wait for the other.
    guard KeyFunctions.serving != ObjectIdentifier(self) else { throw .reentered }
    guard let unlock = request as? SessionUnlockRequest, unlock.outcome == .success else {
      if [.sessionUnlock, .sessionLock, .sessionLogout].contains(name) { withdraw() }
      return try await queued { () throws(HoldfastError) in try handle.call(name, request) }
    }
    let (number, shown) = await show(handle.opened.unlockPrompt)
    return try await queued { [self] () throws(HoldfastError) in
      // The calls run one after another: a lock that was called before has withdrawn the key.
      let (outcome, key) = isValid(number) ? shown : (.cancelled, nil)
      lock.withLock { state.released = key.map { (Thread.current, $0) } }
      defer { lock.withLock { state.released = nil } }
      return try handle.call(name, SessionUnlockRequest(outcome: outcome))
    }
  }

  private func queued<Reply: Sendable>(
    _ call: @escaping @Sendable () throws(HoldfastError) -> Reply
  ) async throws(HoldfastError) -> Reply {
    try await withCheckedContinuation { continuation in
      calls.async { continuation.resume(returning: Result(catching: call)) }
    }.get()
  }

  /// Take the prompt back, and show no other.
  func close() {
    lock.withLock { state.isClosed = true }
    withdraw()
  }

  // MARK: The prompt

  private func withdraw() { lock.withLock { _ = state.withdraw() } }

  private func isValid(_ number: Int) -> Bool {
    lock.withLock { number == state.withdrawn && !state.isClosed }
  }

  /// Show the prompt when the one before is gone, which is taken back. What it gives counts while the
  /// number is valid.
  private func show(_ text: String) async -> (number: Int, Shown) {
    let (number, prompt) = lock.withLock {
      let (number, before) = (state.withdraw(), state.prompt)
      let prompt = Task { [self] in
        _ = await before?.value
        guard isValid(number) else { return Shown(.cancelled, nil) }
        let (result, key) = await answer { try await $0.load(.biometric, prompt: text) }
        return (result.outcome, key.map { ReleasedKey($0) })
      }
      state.prompt = prompt
      return (number, prompt)
    }
    defer { lock.withLock { if state.prompt == prompt { state.prompt = nil } } }
    let shown = await withTaskCancellationHandler {
      await prompt.value
    } onCancel: {
      prompt.cancel()
    }
    return (number, shown)
  }
}

private var failed: Int32 { KeyResult.failed.rawValue }

private func at(
  _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<CChar>?
) -> (KeyFunctions, KeyName)? {
  guard let context, let name else { return nil }
  let functions = Unmanaged<KeyFunctions>.fromOpaque(context).takeUnretainedValue()
  return (functions, KeyName(rawValue: String(cString: name)))
}

extension KeyResult {
  /// The outcome of a prompt. There is none for `locked`: the library hears it from the key store itself.
  fileprivate var outcome: Outcome {
    switch self {
    case .ok, .locked: .success
    case .cancelled: .cancelled
    case .failed: .failed
    case .lockout: .lockout
    case .lockoutPermanent: .lockoutPermanent
    case .notEnrolled: .notEnrolled
    case .notFound, .invalidated: .invalidated
    case .unavailable: .unavailable
    }
  }
}
