/// The backend as far as a fleet's load goes: an outage, a capacity, GoTrue's bucket per address,
/// and the chain of refresh tokens.
struct Server {
  /// What devices are told while it is down.
  enum Outage {
    /// Nothing comes back: their time-out ends the request.
    case silent
    /// 503 at once, from the gateway.
    case unavailable
    /// 503 with `Retry-After`: everybody is told the same moment, the outage's end.
    case announced
  }

  /// GoTrue's limit for one address: a bucket of `burst`, filled by `perHour` / 3,600 a second.
  struct Bucket {
    let burst: Int64
    let periodMS: Int64
    private var milli: Int64
    private var lastMS: Int64 = 0

    /// One more every `periodMS`.
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
  /// Requests that it carries out in one second; those beyond are refused with 503.
  let capacity: Int
  var bucket: Bucket?
  /// One answer in so many is lost after it was carried out; 0: none.
  let losesOneIn: Int64
  /// The newest refresh token of every device, by its place in the chain; -1: the session has ended.
  private(set) var chains: [Int]
  private var second: Int64 = -1
  private var carriedOut = 0

  init(
    devices: Int, outage: Outage, downMS: Range<Int64>, capacity: Int, bucket: Bucket? = nil,
    losesOneIn: Int64 = 0
  ) {
    self.outage = outage
    self.downMS = downMS
    self.capacity = capacity
    self.bucket = bucket
    self.losesOneIn = losesOneIn
    chains = Array(repeating: 0, count: devices)
  }

  /// What becomes of a request that arrives now: outcome, when the device knows, what `Retry-After`
  /// says, and for a refresh the token given (-1: refused for good).
  mutating func receive(
    _ purpose: Purpose, from device: Int, holding token: Int, at nowMS: Int64,
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
      carriedOut = 0
    }
    guard carriedOut < capacity else { return (.unavailable, Server.latencyMS, 0, token) }
    if purpose == .refresh, bucket?.take(at: nowMS) == false {
      return (.limited, Server.latencyMS, 0, token)
    }
    carriedOut += 1
    var given = token
    if purpose == .refresh { given = rotate(device, token) }
    if losesOneIn > 0, random.below(losesOneIn) == 0 {
      return (.unreachable, Server.timeoutMS, 0, token)
    }
    return (.answered, Server.latencyMS, 0, given)
  }

  /// The newest token rotates; its parent is given the newest again; an older one ends the session
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
