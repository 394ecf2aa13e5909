import Base
import Store

/// What a host takes from `next`.
public enum Wanted: Int, CaseIterable {
  case news = 1
  case requests = 2
  case all = 3

  var includesNews: Bool { rawValue & Wanted.news.rawValue != 0 }
  var includesRequests: Bool { rawValue & Wanted.requests.rawValue != 0 }
}

/// Computes when the host should ask again: for each kind of reader.
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

    /// Something was already due when the time was computed. It stays due until the reader looks.
    var isDue: Bool { dueMS == foundMS }
  }

  /// Two readings of the device's clock and the monotonic one differ by less than this.
  private static var toleranceMS: Int64 { 50 }

  private struct Reader {
    var known: Known?
    /// Until when it was told to wait, by the monotonic clock; nil before its first call.
    var promisedMS: Int64?
  }

  private let core: Core
  /// By `Wanted`.
  private var readers = [Reader](repeating: Reader(), count: 4)

  init(_ core: Core) { self.core = core }

  /// A reader looks for work: compute its time again at the next query.
  func beginLook(_ what: Wanted) {
    readers[what.rawValue] = Reader()
  }

  /// Milliseconds until there is work for the reader; 0: now; nil: nothing becomes due by time alone.
  /// `find` computes it.
  func wakeIn(
    _ what: Wanted, _ now: Instant, _ find: (Instant) throws(Failure) -> Int64?
  ) throws(Failure) -> Int64? {
    let version = core.database.version
    if let known = readers[what.rawValue].known, isValid(known, version, now) {
      return known.dueMS.map { max(0, $0 - now.monotonicMS) }
    }
    readers[what.rawValue].known = nil
    let wake = try find(now)
    // Keep it only if nothing was written to the file meanwhile.
    if let version, version == core.database.version {
      readers[what.rawValue].known = Known(
        dueMS: wake.map { now.monotonicMS + $0 }, version: version,
        revision: core.revision.value, hasKeys: core.keyRing.keys != nil,
        foundMS: now.monotonicMS, offsetMS: now.wallMS - now.monotonicMS)
    }
    return wake
  }

  /// The reader is told to come back after `wake`.
  func promise(_ what: Wanted, _ wake: Int64?, _ now: Instant) {
    readers[what.rawValue].promisedMS = wake.map { now.monotonicMS + $0 } ?? Int64.max / 2
  }

  /// Whether `wake` comes earlier than the reader was told, or that time is over. A time that counts from
  /// the query, as the key store's, moves on with each query; what was told does not.
  func isDue(_ what: Wanted, _ wake: Int64?, _ now: Instant) -> Bool {
    guard wake != 0, let told = readers[what.rawValue].promisedMS else { return wake == 0 }
    let left = max(0, told - now.monotonicMS)
    return left == 0 || wake.map { $0 < left - WakeTimer.toleranceMS } ?? false
  }

  private func isValid(_ known: Known, _ version: FileVersion?, _ now: Instant) -> Bool {
    version == known.version && core.revision.value == known.revision
      && (core.keyRing.keys != nil) == known.hasKeys && now.monotonicMS >= known.foundMS
      && abs(now.wallMS - now.monotonicMS - known.offsetMS) < WakeTimer.toleranceMS
      && (known.isDue || now.monotonicMS < known.dueMS ?? Int64.max)
  }

  // MARK: Calls that only add work

  /// The readers for which something is known to be due.
  func knownDue() -> [Wanted] {
    let (version, now) = (core.database.version, core.clock.now())
    return Wanted.allCases.filter {
      guard let known = readers[$0.rawValue].known, known.isDue else { return false }
      return isValid(known, version, now)
    }
  }

  /// The call has only added work: what was due for these readers is still due.
  func keepDue(_ due: [Wanted]) {
    guard let version = core.database.version else { return }
    for what in due {
      readers[what.rawValue].known?.version = version
      readers[what.rawValue].known?.revision = core.revision.value
    }
  }
}
