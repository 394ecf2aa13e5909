import Base

/// What a host takes from `next`.
public enum Wanted: Int {
  case news = 1
  case requests = 2
  case all = 3

  var includesNews: Bool { rawValue & Wanted.news.rawValue != 0 }
  var includesRequests: Bool { rawValue & Wanted.requests.rawValue != 0 }
}

/// One who takes from `next`, and waits for the time to ask again.
struct Reader {
  /// Two readings of the device's clock and the monotonic one differ by less than this.
  private static var toleranceMS: Int64 { 50 }

  /// Until when it was told to wait, by the monotonic clock; nil before its first call, and while it
  /// looks for work.
  private var promisedMS: Int64?
  /// It was woken. That stays so until it asks, whatever happens meanwhile: what is due is not computed
  /// again for every call that adds work.
  var isWoken = false

  /// It is told to come back after `wake`; nil: after a call or a response.
  mutating func promise(_ wake: Int64?, _ now: Instant) {
    promisedMS = wake.map { now.monotonicMS + $0 } ?? Int64.max / 2
  }

  /// Whether `wake` comes earlier than it was told, or that time is over. A time that counts from the
  /// question, as the key store's, moves on with each question; what was told does not.
  func isDue(_ wake: Int64?, _ now: Instant) -> Bool {
    guard wake != 0, let promisedMS else { return wake == 0 }
    let left = max(0, promisedMS - now.monotonicMS)
    return left == 0 || wake.map { $0 < left - Reader.toleranceMS } ?? false
  }
}
