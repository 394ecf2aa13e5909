/// A time that is stored to be compared later: the end of a pause, a lease or a window.
///
/// The device's clock may be wrong by years and may be corrected at any moment, and the monotonic
/// clock restarts at every boot. Steady time begins in each boot with a reading of the device's clock
/// and goes on by the monotonic clock. So within a boot a correction of the device's clock moves no
/// deadline; across boots times differ by what the device's clock was wrong, so a reader treats a
/// deadline as over that is further away than any of its kind.
///
/// The type keeps readings of the device's clock out of the columns that hold steady times.
public struct SteadyTime: Comparable, ExpressibleByIntegerLiteral, Sendable {
  public let ms: Int64

  public init(ms: Int64) { self.ms = ms }

  public init(integerLiteral ms: Int64) { self.ms = ms }

  public static func < (left: SteadyTime, right: SteadyTime) -> Bool { left.ms < right.ms }

  public static func + (time: SteadyTime, ms: Int64) -> SteadyTime { SteadyTime(ms: time.ms &+ ms) }

  public static func - (time: SteadyTime, ms: Int64) -> SteadyTime { SteadyTime(ms: time.ms &- ms) }

  /// Milliseconds from `right` to `left`. Damaged files hold any number, so nothing here overflows.
  public static func - (left: SteadyTime, right: SteadyTime) -> Int64 { left.ms &- right.ms }
}
