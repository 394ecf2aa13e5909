import CPlatform

/// A reading of every clock at one moment.
public struct Instant: Sendable {
  /// Milliseconds since 1970 by the device's clock, which may be wrong and may jump.
  public var wallMS: Int64
  /// Milliseconds of a clock that only moves forward, also in sleep; anew at every boot.
  public var monotonicMS: Int64
  /// Which boot `monotonicMS` belongs to.
  public var bootID: String

  public init(wallMS: Int64, monotonicMS: Int64, bootID: String) {
    self.wallMS = wallMS
    self.monotonicMS = monotonicMS
    self.bootID = bootID
  }
}

/// Where the time comes from.
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

  /// Only a manual clock can be set.
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
