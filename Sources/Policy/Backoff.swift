/// The delay before the next attempt: exponential back-off with full jitter, 2 s to 5 min.
///
/// Full jitter draws the delay from the whole step, so the attempts of many devices spread evenly.
/// That causes a recovering server the least work (Brooker, "Exponential Backoff And Jitter", AWS
/// Architecture Blog, 2015).
public enum Backoff {
  /// The shortest delay between two attempts.
  public static let minDelayMS: Int64 = 2_000
  /// The longest step, unless the server asks for a longer one.
  public static let maxStepMS: Int64 = 300_000

  /// The longest delay, whatever the server asks for.
  public static let maxDelayMS = RetryAfter.maxMS + maxStepMS

  /// The delay after the failed attempt number `attempt` (1 is the first): between 2 s and
  /// 2 s · 2^attempt, at most 5 min. `random` is 64 random bits.
  ///
  /// `floorMS` is the delay that the server asks for, and then the shortest. The server tells all
  /// devices the same moment, so the delays spread behind it over the same time again, at most 5
  /// min.
  public static func delayMS(attempt: Int, random: UInt64, floorMS: Int64 = 0) -> Int64 {
    let floor = min(max(floorMS, 0), RetryAfter.maxMS)
    let least = max(minDelayMS, floor)
    let longest = max(maxDelayMS(attempt: attempt), floor + min(floor, maxStepMS))
    return least + jitterMS(upTo: longest - least, random)
  }

  /// A part of this time, by 64 random bits.
  static func jitterMS(upTo most: Int64, _ random: UInt64) -> Int64 {
    Int64(clamping: random.multipliedFullWidth(by: UInt64(clamping: most) + 1).high)
  }

  /// The longest delay after the failed attempt number `attempt`.
  public static func maxDelayMS(attempt: Int) -> Int64 {
    // 2 s · 2^8 exceeds 5 min. Larger exponents would overflow.
    let exponent = Int64(min(max(attempt, 1), 8))
    return min(minDelayMS << exponent, maxStepMS)
  }
}

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
