import CHoldfast
import Foundation

/// The handle of the C library. Its calls run one after another on a thread of their own, where they may write to
/// disk and wait for the key store. It may be used after `close`.
final class Handle: @unchecked Sendable {
  /// The longest wait in a row, so that other processes that come are noticed.
  private static var napMs: Int { 10_000 }

  private let pointer: OpaquePointer
  private let queue: DispatchQueue
  /// Copies of the library's descriptors: they outlive the handle, for those who wait.
  private let descriptors: [Int32: Int32]
  let opened: OpenReply

  private init(_ config: Config, _ keys: KeyFunctions?, _ queue: DispatchQueue)
    throws(HoldfastError)
  {
    let text = try config.json
    var made: OpaquePointer?
    var reply: UnsafeMutablePointer<CChar>?
    let status =
      if let keys {
        withUnsafePointer(to: keys.functions) { holdfast_open(text, $0, &made, &reply) }
      } else {
        holdfast_open(text, nil, &made, &reply)
      }
    opened = try Handle.read(status, reply)
    guard let made else { throw HoldfastError(withoutReply: HOLDFAST_INTERNAL) }
    (pointer, self.queue) = (made, queue)
    descriptors = [HOLDFAST_NEXT_NEWS, HOLDFAST_NEXT_REQUESTS].reduce(into: [:]) {
      $0[$1] = dup(holdfast_wake_fd(made, $1))
    }
    guard descriptors.values.allSatisfy({ $0 >= 0 }) else {
      holdfast_close(made)
      throw HoldfastError(withoutReply: HOLDFAST_NOMEM)
    }
  }

  deinit {
    for descriptor in descriptors.values where descriptor >= 0 { Foundation.close(descriptor) }
  }

  static func open(_ config: Config, _ keys: KeyFunctions?) async throws(HoldfastError) -> Handle {
    let queue = DispatchQueue(label: "holdfast")
    return try await run(on: queue) { () throws(HoldfastError) in try Handle(config, keys, queue) }
  }

  // MARK: Calls

  /// Do something between two calls.
  func run<Reply: Sendable>(
    _ body: @escaping @Sendable () throws(HoldfastError) -> Reply
  ) async throws(HoldfastError) -> Reply {
    try await Handle.run(on: queue, body)
  }

  private static func run<Reply: Sendable>(
    on queue: DispatchQueue, _ body: @escaping @Sendable () throws(HoldfastError) -> Reply
  ) async throws(HoldfastError) -> Reply {
    try await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: Result(catching: body)) }
    }.get()
  }

  /// Only inside `run`.
  func call<Reply: Decodable>(_ name: String, _ request: Request) throws(HoldfastError) -> Reply {
    let text = try request.json
    var reply: UnsafeMutablePointer<CChar>?
    let status = holdfast_call(pointer, name, text, &reply)
    return try Handle.read(status, reply)
  }

  /// What the library has now, for the readers of HOLDFAST_NEXT_*. Only inside `run`.
  func take(_ what: Int32) throws(HoldfastError) -> Next {
    var reply: UnsafeMutablePointer<CChar>?
    let status = holdfast_next(pointer, what, 0, &reply)
    return try Handle.read(status, reply)
  }

  func close() async {
    try? await run { [self] () throws(HoldfastError) in holdfast_close(pointer) }
  }

  /// Without waiting for anybody.
  func abandon() { queue.async { [self] in holdfast_close(pointer) } }

  private static func read<Reply: Decodable>(
    _ status: Int32, _ text: UnsafeMutablePointer<CChar>?
  ) throws(HoldfastError) -> Reply {
    defer { holdfast_free(text) }
    guard let text else { throw HoldfastError(withoutReply: status) }
    let data = Data(bytesNoCopy: text, count: strlen(text), deallocator: .none)
    guard status == HOLDFAST_OK else { throw HoldfastError(status, data) }
    do { return try JSONDecoder().decode(Reply.self, from: data) } catch {
      throw HoldfastError(HOLDFAST_INTERNAL, .internalDefect, "the reply is no \(Reply.self)")
    }
  }

  // MARK: Waiting

  /// Wait until the library has something for the reader, for so long, or until the task is cancelled.
  func wait(_ what: Int32, forMs: Int?) async {
    guard let descriptor = descriptors[what] else { return }
    nonisolated(unsafe) let source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
    nonisolated(unsafe) let timer = DispatchSource.makeTimerSource()
    // At least 10 ms, because a manual clock stands still.
    let ms = max(10, min(forMs ?? Handle.napMs, Handle.napMs))
    timer.schedule(deadline: .now() + .milliseconds(ms))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        source.setEventHandler { source.cancel() }
        timer.setEventHandler { source.cancel() }
        source.setCancelHandler {
          timer.cancel()
          continuation.resume()
        }
        source.activate()
        timer.activate()
      }
    } onCancel: {
      source.cancel()
    }
  }
}

/// A reply without fields.
struct Nothing: Decodable {}
