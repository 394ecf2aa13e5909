/// A model of the backend's load: an outage, a capacity, GoTrue's rate limit per address, and the
/// chain of refresh tokens.
struct Server {
  /// The answer to devices while the backend is down.
  enum Outage {
    /// No answer: the request ends by its timeout.
    case silent
    /// 503 at once, from the gateway.
    case unavailable
    /// 503 with `Retry-After`: every device gets the same moment, the end of the outage.
    case announced
  }

  /// GoTrue's rate limit for one address: a bucket of `burst`, refilled by `perHour` / 3,600 a second.
  struct Bucket {
    let burst: Int64
    let periodMS: Int64
    private var milli: Int64
    private var lastMS: Int64 = 0

    /// The bucket gains one every `periodMS`.
    init(burst: Int64, periodMS: Int64) {
      self.burst = burst
      self.periodMS = periodMS
      milli = burst * periodMS
    }

    mutating func take(at nowMS: Int64) -> Bool {
      milli = min(burst * periodMS, milli + nowMS - lastMS)
      lastMS = nowMS
      guard milli >= periodMS else { return false }
      milli -= periodMS
      return true
    }
  }

  static let timeoutMS: Int64 = 15_000
  static let latencyMS: Int64 = 200

  let outage: Outage
  let downMS: Range<Int64>
  /// The work that it does in a second, in microseconds of a core; it refuses more with 503.
  let capacity: Int
  let costs: Costs
  var bucket: Bucket?
  /// One answer in this many is lost after the request was handled; 0: none.
  let losesOneIn: Int64
  /// The position of every device's newest refresh token in its chain; -1: the session has ended.
  private(set) var chains: [Int]
  private var second: Int64 = -1
  private var workDone = 0

  init(
    devices: Int, outage: Outage, downMS: Range<Int64>, capacity: Int, costs: Costs,
    bucket: Bucket? = nil, losesOneIn: Int64 = 0
  ) {
    self.outage = outage
    self.downMS = downMS
    self.capacity = capacity
    self.costs = costs
    self.bucket = bucket
    self.losesOneIn = losesOneIn
    chains = Array(repeating: 0, count: devices)
  }

  /// Handles a request that arrives now and takes `work`. Returns the outcome, when the device learns of it, the
  /// `Retry-After`, and for a refresh the new token (-1: refused for good).
  mutating func receive(
    _ purpose: Purpose, of work: Int, from device: Int, holding token: Int, at nowMS: Int64,
    _ random: inout Generator
  ) -> (outcome: Outcome, afterMS: Int64, floorMS: Int64, token: Int) {
    if downMS.contains(nowMS) {
      switch outage {
      case .silent: return (.unreachable, Server.timeoutMS, 0, token)
      case .unavailable: return (.unavailable, Server.latencyMS, 0, token)
      case .announced:
        return (.unavailable, Server.latencyMS, downMS.upperBound - nowMS, token)
      }
    }
    if nowMS / 1_000 != second {
      second = nowMS / 1_000
      workDone = 0
    }
    guard capacity - workDone >= work else { return (.unavailable, Server.latencyMS, 0, token) }
    if purpose == .refresh, bucket?.take(at: nowMS) == false {
      return (.limited, Server.latencyMS, 0, token)
    }
    workDone += work
    var given = token
    if purpose == .refresh { given = rotate(device, token) }
    if losesOneIn > 0, random.below(losesOneIn) == 0 {
      return (.unreachable, Server.timeoutMS, 0, token)
    }
    return (.answered, Server.latencyMS, 0, given)
  }

  /// The newest token rotates; its parent returns the newest again; an older one ends the session
  /// (`wire.md` A6, without a reuse interval).
  private mutating func rotate(_ device: Int, _ token: Int) -> Int {
    switch chains[device] - token {
    case 0: chains[device] += 1
    case 1: break
    default: chains[device] = -1
    }
    return chains[device]
  }
}
