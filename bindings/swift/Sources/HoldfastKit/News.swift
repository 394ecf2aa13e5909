import CHoldfast
import Foundation

/// What the library has for the app, one after another.
public struct News: AsyncSequence, AsyncIteratorProtocol, Sendable {
  let reader: NewsReader

  public func makeAsyncIterator() -> News { self }

  public func next() async throws -> Next? {
    while !Task.isCancelled {
      do throws(HoldfastError) {
        guard let next = try await reader.next(-1) else { return nil }
        if case .wakeInMs = next { continue }
        return next
      } catch {
        // The library has waited as long as makes sense, and has written a line to its log.
        guard error.retryable, error.code != .handleBusy else { throw error }
        try? await Task.sleep(for: .seconds(1))
      }
    }
    return nil
  }
}

/// Takes the news, for one reader at a time. It takes nothing before it is asked for, because asking acknowledges.
final class NewsReader: @unchecked Sendable {
  private let handle: Handle
  private let lock = NSLock()
  private var newest: Decision?
  private var isFirst = true
  private var isReading = false
  /// What `settled` has passed over.
  private var kept: [Next] = []

  init(_ handle: Handle) {
    self.handle = handle
    newest = handle.opened.screen
  }

  var screen: Decision? { lock.withLock { newest } }

  func keep(_ things: [Next]) { lock.withLock { kept += things } }

  func next(_ timeoutMs: Int) async throws(HoldfastError) -> Next? {
    let (isAlone, ready): (Bool, Next?) = lock.withLock {
      guard !isReading else { return (false, nil) }
      defer { (isFirst, isReading) = (false, true) }
      if isFirst, let newest { return (true, .screen(newest)) }
      return (true, kept.isEmpty ? nil : kept.removeFirst())
    }
    guard isAlone else {
      throw HoldfastError(
        HOLDFAST_BUSY, .handleBusy, "somebody reads the news already", retry: true)
    }
    defer { lock.withLock { isReading = false } }
    if let ready { return ready }
    let start = ContinuousClock.now
    while true {
      let next: Next
      do throws(HoldfastError) {
        next = try await handle.run { [handle] () throws(HoldfastError) in
          try handle.take(HOLDFAST_NEXT_NEWS)
        }
      } catch {
        if error.status == HOLDFAST_CLOSED { return nil }
        throw error
      }
      if case .screen(let screen) = next { lock.withLock { newest = screen } }
      guard case .wakeInMs(let wakeMs) = next else { return next }
      let left =
        timeoutMs < 0 ? Int.max : timeoutMs - Int((ContinuousClock.now - start) / .milliseconds(1))
      guard left > 0, !Task.isCancelled else { return next }
      await handle.wait(HOLDFAST_NEXT_NEWS, forMs: min(left, wakeMs ?? .max))
    }
  }
}
