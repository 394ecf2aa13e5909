/// How loud a banner is.
public enum Tone: String, CaseIterable, Sendable {
  case info, warning
}

/// What a screen says beside its content. The raw values are the stable codes of the C API.
public enum Banner: String, CaseIterable, Sendable {
  case offline
  case staleData = "stale_data"
  case nothingCachedYet = "nothing_cached_yet"
  case encryptedRequiresConnectivity = "encrypted_requires_connectivity"
  case queuedNotSent = "queued_not_sent"

  /// Being offline is normal (OFF-3), and so is work that waits for a network: that informs. What may
  /// mislead warns.
  public var tone: Tone { self == .staleData ? .warning : .info }

  /// It says how old the data is.
  public var tellsAge: Bool { self == .staleData || self == .offline }
}

/// Which banners a decision or a reply carries: everything that any of them says is decided here.
public struct Banners: Equatable, Sendable {
  public var isOffline = false
  /// What is shown is older than it should be, although a newer state was asked for.
  public var isStale = false
  /// What was asked for was never fetched.
  public var isEmpty = false
  /// Fields are left out because they are never cached.
  public var withholds = false
  /// Registrations wait to be sent.
  public var isUnsent = false

  /// Cached data this old is out of date, whatever the network is like.
  public static var oldMS: Int64 { 86_400_000 }

  /// What a clock may be ahead of another.
  private static var aheadMS: Int64 { 3_600_000 }

  public init() {}

  /// A decision: of the memberships that it rests on.
  public init(decision: Decision) {
    isOffline = decision.offline
    isStale = decision.stale
  }

  /// A reply with cached data. `failing`: the last attempt to reach the server failed.
  public init(asOfMS: Int64?, nowMS: Int64, online: Bool, failing: Bool) {
    isOffline = !online
    if let asOfMS {
      // One of the future was noted under another clock: how old it is nobody knows.
      let isOld = nowMS - asOfMS > Banners.oldMS || asOfMS - nowMS > Banners.aheadMS
      isStale = online && failing || isOld
    } else {
      isEmpty = true
    }
  }

  /// Most general first.
  public var banners: [Banner] {
    var result: [Banner] = []
    if isOffline { result.append(.offline) }
    if isStale { result.append(.staleData) }
    if isEmpty { result.append(.nothingCachedYet) }
    if withholds, isOffline { result.append(.encryptedRequiresConnectivity) }
    if isUnsent { result.append(.queuedNotSent) }
    return result
  }
}
