import CHoldfast
import Foundation

/// The functions of `holdfast_keystore` over a key store that may take its time. They wait for it, so nothing that
/// calls them may run on a thread of Swift's pool: the key store needs those.
final class KeyFunctions: @unchecked Sendable {
  /// How long a function waits. What comes later counts as `failed`.
  private static var patienceS: Double { 10 }
  /// The functions that a task carries out something for.
  @TaskLocal private static var serving: ObjectIdentifier?

  private let store: any KeyStore
  private let patienceS: Double
  private let lock = NSLock()
  private var state = State()

  private struct State {
    /// The number of the last call that withdrew a prompt.
    var withdrawn = 0
    var isClosed = false
    var prompt: Task<Answer, Never>?
    /// What came of the prompt, for the unlock on this thread.
    var released: (thread: Thread, answer: Answer)?

    mutating func withdraw() -> Int {
      withdrawn += 1
      prompt?.cancel()
      return withdrawn
    }
  }

  private typealias Answer = (result: KeyResult, key: Data?)

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
      return released.answer
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

  /// Whether the caller's task carries out something for the library.
  var isServing: Bool { KeyFunctions.serving == ObjectIdentifier(self) }

  /// Show the prompt, and then make the call to which its answer is the outcome.
  func unlock(_ handle: Handle) async throws(HoldfastError) {
    let (number, shown) = await show(handle.opened.unlockPrompt)
    try await handle.run { [self] () throws(HoldfastError) in
      // The calls run one after another: a lock that was called before has taken the prompt back.
      release(isValid(number) ? shown : (.cancelled, nil))
      defer { release(nil) }
      let _: Nothing = try handle.call("session_unlock", [:])
    }
  }

  private func release(_ answer: Answer?) {
    lock.withLock { state.released = answer.map { (Thread.current, $0) } }
  }

  /// Take the prompt back, and show no other.
  func close() {
    lock.withLock { state.isClosed = true }
    withdraw()
  }

  func withdraw() { lock.withLock { _ = state.withdraw() } }

  // MARK: The prompt

  private func isValid(_ number: Int) -> Bool {
    lock.withLock { number == state.withdrawn && !state.isClosed }
  }

  /// Show the prompt when the one before is gone, which is taken back. Its answer counts while the number is valid.
  private func show(_ text: String) async -> (number: Int, Answer) {
    let (number, prompt) = lock.withLock {
      let (number, before) = (state.withdraw(), state.prompt)
      let prompt = Task { [self] in
        _ = await before?.value
        guard isValid(number) else { return Answer(.cancelled, nil) }
        return await answer { try await $0.load(.biometric, prompt: text) }
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
