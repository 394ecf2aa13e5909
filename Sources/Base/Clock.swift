import CPlatform

/// The readings of all clocks at one moment.
public struct Instant: Sendable {
  /// Milliseconds since 1970 on the device's clock, which may be wrong and may jump.
  public var wallMS: Int64
  /// Milliseconds on a clock that only moves forward and counts sleep. It restarts at every boot.
  public var monotonicMS: Int64
  /// The boot that `monotonicMS` belongs to.
  public var bootID: String

  public init(wallMS: Int64, monotonicMS: Int64, bootID: String) {
    self.wallMS = wallMS
    self.monotonicMS = monotonicMS
    self.bootID = bootID
  }

  /// How long ago a moment was: within a boot by the monotonic clock, so that moving the device's
  /// clock changes nothing; across boots by the device's clock. Where boots have no id, the longer of
  /// both times counts: the monotonic clock restarts at zero, so it never counts more than has passed.
  public func ageMS(wallMS before: Int64, monotonicMS: Int64?, bootID boot: String?) -> Int64 {
    let byDevice = wallMS - before
    guard boot == bootID, let monotonicMS, self.monotonicMS >= monotonicMS else { return byDevice }
    let counted = self.monotonicMS - monotonicMS
    return bootID.isEmpty ? max(byDevice, counted) : counted
  }
}

/// The source of time: the system's clocks, or a manual clock for tests.
public final class Clock {
  private var manual: Instant?
  private let systemBootID: String

  public enum Kind: String, CaseIterable, Sendable { case system, manual }

  public init(_ kind: Kind) {
    systemBootID = Clock.readBootID()
    if kind == .manual {
      manual = Instant(
        wallMS: platform_wall_ms(), monotonicMS: platform_monotonic_ms(), bootID: systemBootID)
    }
  }

  public var isManual: Bool { manual != nil }

  public func now() -> Instant {
    manual
      ?? Instant(
        wallMS: platform_wall_ms(), monotonicMS: platform_monotonic_ms(), bootID: systemBootID)
  }

  /// Sets a manual clock. Has no effect on the system's.
  public func set(_ instant: Instant) {
    if manual != nil { manual = instant }
  }

  private static func readBootID() -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 37) { buffer in
      guard let start = buffer.baseAddress else { return "" }
      platform_boot_id(start)
      return String(cString: start)
    }
  }
}
