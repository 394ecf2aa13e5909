/// Paces the requests of one purpose by their responses.
public struct ServicePause: Equatable, Sendable {
  /// The number of failures in a row.
  public private(set) var attempts: Int64
  /// Nothing is sent before this time on the caller's clock.
  public private(set) var notBeforeMS: Int64

  public init(attempts: Int64 = 0, notBeforeMS: Int64 = 0) {
    self.attempts = attempts
    self.notBeforeMS = notBeforeMS
  }

  /// After a failure, one small request probes the service; the others follow after a success.
  /// Many devices that sent everything at once would keep a recovering server down.
  public var isProbing: Bool { attempts > 0 }

  /// Notes a failed request, and returns the delay that follows. It does not shorten a pause that
  /// lasts: several requests may have been in flight.
  public mutating func fail(at nowMS: Int64, random: UInt64, floorMS: Int64) -> Int64 {
    attempts += 1
    let delay = Backoff.delayMS(attempt: Int(attempts), random: random, floorMS: floorMS)
    notBeforeMS = max(notBeforeMS, nowMS + delay)
    return delay
  }

  /// The delay of a read after this service has recovered: reads of many devices spread over the
  /// step that their last failed attempts did. After a pause that the server asked for (`isAsked`)
  /// the devices return together, so the reads spread over the longest step.
  public func readDelayMS(random: UInt64, isAsked: Bool) -> Int64 {
    Backoff.delayMS(attempt: isAsked ? .max : Int(attempts), random: random)
  }

  /// Notes a success. While a pause lasts (`pauseLeftMS` > 0), the response belongs to a request
  /// that was sent before the failure, and does not end the pause.
  public mutating func succeed(pauseLeftMS: Int64) {
    if pauseLeftMS <= 0 { self = ServicePause() }
  }
}
