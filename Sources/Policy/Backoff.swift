/// When to try again: exponential back-off with full jitter, 2 s to 5 min.
///
/// Full jitter spreads the attempts of many devices over the whole step, which costs a recovering
/// server the least work (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
public enum Backoff {
  /// No attempt follows another sooner.
  public static let minDelayMS: Int64 = 2_000
  /// No step is longer, unless the server asks for it.
  public static let maxStepMS: Int64 = 300_000

  /// No delay is longer, whatever the server asks for.
  public static let maxDelayMS = RetryAfter.maxMS + maxStepMS

  /// The delay after the failed attempt number `attempt` (1 is the first): anything from 2 s to
  /// 2 s · 2^attempt, at most 5 min; `random` is 64 random bits.
  ///
  /// `floorMS` is what the server asked for, and the least delay then. It tells every device the same
  /// moment, so the longer it is the further they spread behind it: over as long again, at most
  /// 5 min.
  public static func delayMS(attempt: Int, random: UInt64, floorMS: Int64 = 0) -> Int64 {
    let floor = min(max(floorMS, 0), RetryAfter.maxMS)
    let least = max(minDelayMS, floor)
    let longest = max(maxDelayMS(attempt: attempt), floor + min(floor, maxStepMS))
    let jitter = random.multipliedFullWidth(by: UInt64(clamping: longest - least) + 1).high
    return least + Int64(clamping: jitter)
  }

  /// The longest delay after the failed attempt number `attempt`.
  public static func maxDelayMS(attempt: Int) -> Int64 {
    // 2 s · 2^8 is beyond 5 min: larger exponents would only overflow.
    let exponent = Int64(min(max(attempt, 1), 8))
    return min(minDelayMS << exponent, maxStepMS)
  }
}
