import Base
import Store

/// Computes when the host should poll again.
///
/// The time is computed from what is stored and in flight, never from a flag, so no wake-up is
/// lost. That takes many statements, and every call needs the time, so the result is kept until
/// something that it depends on changes: the file's version, the revision of the parts, the
/// presence of keys, and the two clocks against each other.
final class WakeTimer {
  private struct Known {
    /// By the monotonic clock; nil: nothing becomes due by time alone.
    let dueMS: Int64?
    var version: FileVersion
    var revision: UInt
    let hasKeys: Bool
    let foundMS: Int64
    /// The device's clock minus the monotonic one.
    let offsetMS: Int64

    /// Something was already due when the time was computed. It stays due until a poll.
    var isDue: Bool { dueMS == foundMS }
  }

  /// Two readings of the device's clock and the monotonic one differ by less than this.
  private static var toleranceMS: Int64 { 50 }

  private let core: Core
  private var known: Known?
  /// Until when the last poll told the host to wait, by the monotonic clock; nil before the first
  /// poll.
  private var promisedMS: Int64?

  init(_ core: Core) { self.core = core }

  /// A poll begins: compute the time again at the next query.
  func beginPoll() {
    known = nil
    promisedMS = nil
  }

  /// Milliseconds until the next poll has work; 0: now; nil: nothing becomes due by time alone.
  /// `find` computes it.
  func wakeIn(
    _ now: Instant, _ find: (Instant) throws(Failure) -> Int64?
  ) throws(Failure) -> Int64? {
    let version = core.database.version
    if let known, isValid(known, version, now) {
      return known.dueMS.map { max(0, $0 - now.monotonicMS) }
    }
    known = nil
    let wake = try find(now)
    // Keep it only if nothing was written to the file meanwhile.
    if let version, version == core.database.version {
      known = Known(
        dueMS: wake.map { now.monotonicMS + $0 }, version: version,
        revision: core.revision.value, hasKeys: core.keyRing.keys != nil,
        foundMS: now.monotonicMS, offsetMS: now.wallMS - now.monotonicMS)
    }
    return wake
  }

  /// A poll tells the host to come back after `wake`.
  func promise(_ wake: Int64?, _ now: Instant) {
    promisedMS = wake.map { now.monotonicMS + $0 } ?? Int64.max / 2
  }

  /// Milliseconds until the time that the last poll told the host; nil: it told none. A time that
  /// counts from the query, as the key store's, moves on with each query; this one does not.
  func promisedIn(_ now: Instant) -> Int64? {
    promisedMS.map { max(0, $0 - now.monotonicMS) }
  }

  /// Whether `wake` comes earlier than the last poll promised, or that time is over.
  func isDue(_ wake: Int64?, _ now: Instant) -> Bool {
    guard wake != 0, let promised = promisedIn(now) else { return wake == 0 }
    return promised == 0 || wake.map { $0 < promised - WakeTimer.toleranceMS } ?? false
  }

  private func isValid(_ known: Known, _ version: FileVersion?, _ now: Instant) -> Bool {
    version == known.version && core.revision.value == known.revision
      && (core.keyRing.keys != nil) == known.hasKeys && now.monotonicMS >= known.foundMS
      && abs(now.wallMS - now.monotonicMS - known.offsetMS) < WakeTimer.toleranceMS
      && (known.isDue || now.monotonicMS < known.dueMS ?? Int64.max)
  }

  // MARK: Calls that only add work

  /// Whether something is known to be due.
  func isKnownDue() -> Bool {
    guard let known, known.isDue else { return false }
    return isValid(known, core.database.version, core.clock.now())
  }

  /// The call has only added work: what was due before it is still due.
  func keepDue() {
    guard let version = core.database.version else { return }
    known?.version = version
    known?.revision = core.revision.value
  }
}
