/// How a service's answers pace what is sent to it.
public struct ServiceBackoff: Equatable, Sendable {
  /// Failures in a row.
  public private(set) var attempts: Int64
  /// Nothing is sent before, in the caller's clock.
  public private(set) var notBeforeMS: Int64

  public init(attempts: Int64 = 0, notBeforeMS: Int64 = 0) {
    self.attempts = attempts
    self.notBeforeMS = notBeforeMS
  }

  /// After a failure one request at a time finds out whether the service is back; the others follow
  /// its success. A fleet that all sent everything at once would keep a recovering server down.
  public var isProbing: Bool { attempts > 0 }

  /// A request failed: the pause that follows it.
  public mutating func fail(at nowMS: Int64, random: UInt64, floorMS: Int64) -> Int64 {
    attempts += 1
    let delay = Backoff.delayMS(attempt: Int(attempts), random: random, floorMS: floorMS)
    notBeforeMS = nowMS + delay
    return delay
  }

  /// A request was answered, when `pauseLeftMS` of the pause was left. An answer to what was sent
  /// before the failure does not end the pause.
  public mutating func succeed(pauseLeftMS: Int64) {
    if pauseLeftMS <= 0 { self = ServiceBackoff() }
  }
}
