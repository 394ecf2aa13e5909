import CHoldfast
import Foundation

/// The host's loop: polls, sends requests, keeps events. It does not know its `Holdfast`, so that one can
/// be released.
final class Driver: @unchecked Sendable {
  /// The most events that wait for the reader before the library is asked for no more.
  private static var waitingEvents: Int { 400 }
  private static var pauseS: Double { 0.25 }

  private let handle: Handle
  private let sender: any HTTPSender
  /// One poll at a time, so that events keep their order.
  private let polling = NSLock()
  private let queue = DispatchQueue(label: "holdfast.poll")
  /// Signalled when the loop may go on.
  private let lock = NSCondition()
  private var state = State()

  private struct State {
    var isClosing = false
    /// Nothing is sent until the next call of the app.
    var isSuspended = false
    var hasEnded = false
    /// The loop's thread is in the library no more, and the calls that wait for this.
    var hasLeft = false
    var leaving: [CheckedContinuation<Void, Never>] = []
    var failure: HoldfastError?
    var events: [Event] = []
    var isReading = false
    var reader: CheckedContinuation<Event?, Never>?
    var seen = 0
    var acknowledged = 0
    var isPollDue = false
    var newest: Decision?
    var replied = 0
    var waiters: [(after: Int, continuation: CheckedContinuation<Decision?, Never>)] = []
    var sending: [Int: Task<Void, Never>] = [:]
    /// How many requests have come, how many have failed, and the items that waited after the last one of
    /// a sync run.
    var begun = 0
    var failed = 0
    var unsent = 0
  }

  init(_ handle: Handle, _ sender: any HTTPSender) {
    self.handle = handle
    self.sender = sender
    let thread = Thread { [self] in
      follow()
      noteLeft()
    }
    thread.name = "holdfast"
    thread.start()
  }

  private func with<Result>(_ body: (inout State) -> Result) -> Result {
    lock.withLock { body(&state) }
  }

  var isClosing: Bool { with { $0.isClosing } }
  var failure: HoldfastError? { with { $0.failure } }

  // MARK: The loop

  private func follow() {
    while poll() {
      let status = handle.wait()
      if status == HOLDFAST_CLOSED { break }
      // A disk or key store failed: try again a little later.
      if status != HOLDFAST_OK { Thread.sleep(forTimeInterval: 1) }
      lock.withLock { while state.isSuspended, !state.isClosing { lock.wait() } }
    }
  }

  /// Poll, and hand out what came. False: there is nothing more to poll for.
  private func poll() -> Bool {
    polling.lock()
    defer { polling.unlock() }
    while true {
      let request: PollRequest?? = with { state in
        guard !state.isClosing, !state.hasEnded else { return nil }
        state.isPollDue = false
        if state.isSuspended { return .some(nil) }
        state.acknowledged = state.seen
        let isFull = state.events.count >= Driver.waitingEvents && state.waiters.isEmpty
        return PollRequest(
          ack: state.seen > 0 ? state.seen : nil, maxEvents: isFull ? 0 : nil, onlyNew: true)
      }
      guard let request else { return false }
      guard let request else { return true }
      do throws(HoldfastError) {
        let polled: PollReply = try handle.call(.poll, request)
        for event in polled.events { give(event) }
        begin(polled)
        return true
      } catch {
        if error.retryable {
          Thread.sleep(forTimeInterval: Driver.pauseS)
          continue
        }
        if error.status != HOLDFAST_CLOSED { with { $0.failure = $0.failure ?? error } }
        end()
        return false
      }
    }
  }

  /// Poll soon: to acknowledge, and to take the events that wait in the library.
  private func pollSoon() {
    let isFirst = with { state in
      defer { state.isPollDue = true }
      return !state.isPollDue
    }
    if isFirst { queue.async { [self] in _ = poll() } }
  }

  // MARK: Events

  private func give(_ event: Event) {
    switch event {
    case .decision(let one): note(one.decision, isReply: false)
    case .syncProgress(let one): with { $0.unsent = one.counts.unsent }
    case .syncCompleted(let one): with { $0.unsent = one.waiting }
    default: break
    }
    let reader = with { state in
      let reader = state.reader
      state.reader = nil
      if reader == nil { state.events.append(event) }
      return reader
    }
    reader?.resume(returning: event)
  }

  /// The next event; nil at the end. Asking for it acknowledges the one before.
  func next(after last: Event?) async -> Event? {
    if let last {
      with { $0.seen = max($0.seen, last.seq) }
      pollSoon()
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let event: Event?? = with { state in
          if !state.events.isEmpty { return .some(state.events.removeFirst()) }
          if state.hasEnded || Task.isCancelled { return .some(nil) }
          state.reader = continuation
          return nil
        }
        if let event { continuation.resume(returning: event) }
      }
    } onCancel: {
      let reader = with { state in
        defer { state.reader = nil }
        return state.reader
      }
      reader?.resume(returning: nil)
    }
  }

  /// False: somebody reads already.
  func beginReading() -> Bool {
    with { state in
      defer { state.isReading = true }
      return !state.isReading
    }
  }

  func endReading() { with { $0.isReading = false } }

  /// Whether the event is a decision that is older than one that a call has replied.
  func isSuperseded(_ event: Event) -> Bool {
    guard case .decision(let one) = event else { return false }
    return one.decision.number < with { $0.replied }
  }

  // MARK: Decisions

  func note(_ decision: Decision, isReply: Bool = true) {
    let ready = with { state in
      if isReply { state.replied = max(state.replied, decision.number) }
      guard decision.number > state.newest?.number ?? -1 else {
        return [CheckedContinuation<Decision?, Never>]()
      }
      state.newest = decision
      let ready = state.waiters.filter { $0.after < decision.number }.map { $0.continuation }
      state.waiters.removeAll { $0.after < decision.number }
      return ready
    }
    for continuation in ready { continuation.resume(returning: decision) }
  }

  /// A decision with a higher number; nil: the handle was closed.
  func decision(after number: Int) async -> Decision? {
    await withCheckedContinuation { continuation in
      let answer: Decision?? = with { state in
        if let newest = state.newest, newest.number > number { return .some(newest) }
        if state.hasEnded { return .some(nil) }
        state.waiters.append((number, continuation))
        return nil
      }
      if let answer { continuation.resume(returning: answer) } else { pollSoon() }
    }
  }

  // MARK: Requests

  func begin(_ polled: PollReply) {
    with { $0.begun += polled.requests.count }
    for request in polled.requests {
      // Known until it ends.
      lock.withLock {
        state.sending[request.id] = Task.detached { [self] in
          var outcome = HTTPOutcome.failure(.cancelled)
          if with({ !$0.isClosing && !$0.isSuspended }) { outcome = await sender.send(request) }
          if !outcome.isSuccess { with { $0.failed += 1 } }
          await complete(request.id, outcome)
          lock.withLock { state.sending[request.id] = nil }
        }
      }
    }
  }

  /// Complete a request on the driver's queue, and repeat it while the library asks for that. An answer
  /// that the library refuses has failed.
  private func complete(_ id: Int, _ outcome: HTTPOutcome) async {
    var request: CompleteRequest =
      switch outcome {
      case .answer(let status, let headers, let body):
        .answer(id: id, status: status, headers: headers, body: body.map { .value($0) } ?? .null)
      case .failure(let error): .failure(id: id, error: error)
      }
    while let error = await passed(request), error.status != HOLDFAST_CLOSED {
      if error.retryable, !isClosing {
        try? await Task.sleep(nanoseconds: UInt64(Driver.pauseS * 1e9))
      } else if error.status == HOLDFAST_INVALID, case .answer = request {
        request = .failure(id: id, error: .refused)
      } else {
        return
      }
    }
  }

  private func passed(_ request: CompleteRequest) async -> HoldfastError? {
    await withCheckedContinuation { continuation in
      queue.async { [handle] in
        do throws(HoldfastError) {
          let _: CompleteReply = try handle.call(.complete, request)
          continuation.resume(returning: nil)
        } catch { continuation.resume(returning: error) }
      }
    }
  }

  // MARK: The background

  /// Wait until a poll brings no request and none is under way, or until the task is cancelled. The
  /// requests are cancelled with it. True: all requests succeeded, and left nothing to send.
  func idle() async -> Bool {
    let failed = with { $0.failed }
    await withTaskCancellationHandler {
      while with({ !$0.isClosing && !$0.hasEnded && !$0.isSuspended }) {
        let (begun, tasks) = with { ($0.begun, Array($0.sending.values)) }
        for task in tasks { await task.value }
        let goesOn = await withCheckedContinuation { continuation in
          queue.async { [self] in continuation.resume(returning: poll()) }
        }
        let isIdle = with { $0.begun == begun && $0.sending.isEmpty }
        if !goesOn || isIdle && tasks.isEmpty { break }
      }
    } onCancel: {
      _ = cancelRequests()
    }
    return with { $0.failed == failed && $0.unsent == 0 }
  }

  /// Send nothing until the next call of the app, and cancel what is under way.
  func suspend() async {
    while case let tasks = cancelRequests(), !tasks.isEmpty {
      for task in tasks { await task.value }
    }
  }

  private func cancelRequests() -> [Task<Void, Never>] {
    let tasks = with { state in
      state.isSuspended = true
      return Array(state.sending.values)
    }
    for task in tasks { task.cancel() }
    return tasks
  }

  /// The app makes a call.
  func goOn() {
    lock.withLock {
      guard state.isSuspended else { return }
      state.isSuspended = false
      lock.broadcast()
    }
  }

  // MARK: The end

  /// Cancel what is under way, acknowledge the last events, close, and wait until the loop's thread has
  /// left the library: whoever leaves last closes the files. The next open sends cancelled requests again.
  func close() async {
    let (isFirst, tasks) = with { state in
      defer { markClosing(&state) }
      return (!state.isClosing, Array(state.sending.values))
    }
    guard isFirst else { return }
    for task in tasks { task.cancel() }
    for task in with({ Array($0.sending.values) }) { await task.value }
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        finish()
        continuation.resume()
      }
    }
    await withCheckedContinuation { continuation in
      let hasLeft = with { state in
        if !state.hasLeft { state.leaving.append(continuation) }
        return state.hasLeft
      }
      if hasLeft { continuation.resume() }
    }
  }

  private func noteLeft() {
    let leaving = with { state in
      state.hasLeft = true
      defer { state.leaving = [] }
      return state.leaving
    }
    for continuation in leaving { continuation.resume() }
  }

  /// Without waiting for anybody: the handle was released.
  func abandon() {
    let tasks = with { state in
      defer { markClosing(&state) }
      return state.isClosing ? [] : Array(state.sending.values)
    }
    for task in tasks { task.cancel() }
    queue.async { [self] in finish() }
  }

  private func markClosing(_ state: inout State) {
    state.isClosing = true
    lock.broadcast()
  }

  private func finish() {
    let (seen, isDue) = with { ($0.seen, $0.seen > $0.acknowledged && $0.failure == nil) }
    if isDue {
      // A failure leaves the events for the next open.
      let polled: PollReply? = try? handle.call(.poll, PollRequest(ack: seen, maxEvents: 0))
      for request in polled?.requests ?? [] {
        let _: CompleteReply? = try? handle.call(
          .complete, CompleteRequest.failure(id: request.id, error: .cancelled))
      }
    }
    handle.close()
    end()
  }

  private func end() {
    let (reader, waiters) = with { state in
      state.hasEnded = true
      defer { (state.reader, state.waiters) = (nil, []) }
      return (state.reader, state.waiters)
    }
    reader?.resume(returning: nil)
    for waiter in waiters { waiter.continuation.resume(returning: nil) }
  }
}

extension Counts {
  /// The items that need no user.
  var unsent: Int { pending + sending + waiting }
}

extension HTTPOutcome {
  fileprivate var isSuccess: Bool {
    if case .answer(let status, _, _) = self { (200..<300).contains(status) } else { false }
  }
}
