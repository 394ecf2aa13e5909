/// The urgency of a banner.
public enum Tone: String, CaseIterable, Sendable {
  case info, warning
}

/// A notice that a screen shows beside its content. The raw values are the stable codes of the C
/// API.
public enum Banner: String, CaseIterable, Sendable {
  case erasureOwed = "erasure_owed"
  case offline
  case staleData = "stale_data"
  case nothingCachedYet = "nothing_cached_yet"
  case partlyCached = "partly_cached"
  case encryptedRequiresConnectivity = "encrypted_requires_connectivity"
  case queuedNotSent = "queued_not_sent"

  /// Being offline is normal (OFF-3), as is an item that waits for a network: these inform. Data
  /// that may mislead is a warning, and so is a key that a lock or logout could not erase.
  public var tone: Tone { self == .staleData || self == .erasureOwed ? .warning : .info }

  /// Whether the banner says how old the data is.
  public var tellsAge: Bool { self == .staleData || self == .offline }
}

/// Decides which banners a decision or a reply carries.
public struct Banners: Equatable, Sendable {
  /// The key store has not erased a key that a lock or logout asked it to.
  public var owesErasure = false
  public var isOffline = false
  /// The data is out of date, although a newer state was asked for.
  public var isStale = false
  /// The data was never fetched.
  public var isEmpty = false
  /// The first fetch has brought some of the data, and not all.
  public var isPartial = false
  /// Columns that are never cached are left out.
  public var needsNetwork = false
  /// Queued items wait to be sent.
  public var isUnsent = false

  /// Cached data of this age is out of date, online or offline.
  public static var oldMS: Int64 { 86_400_000 }

  /// The difference between two clocks that is tolerated.
  private static var aheadMS: Int64 { 3_600_000 }

  public init() {}

  /// The banners of a decision, which speak of the memberships that it is based on.
  public init(decision: Decision) {
    isOffline = decision.offline
    isStale = decision.stale
  }

  /// The banners of a reply with cached data. `failing`: the last attempt to reach the server
  /// failed. `hasSome`: there is data, though a fetch was never completed.
  public init(
    asOfMS: Int64?, nowMS: Int64, online: Bool, failing: Bool, hasSome: Bool = false
  ) {
    isOffline = !online
    if let asOfMS {
      // A time in the future was stored under another clock: the age is unknown, so it counts as
      // old.
      let isOld = nowMS - asOfMS > Banners.oldMS || asOfMS - nowMS > Banners.aheadMS
      isStale = online && failing || isOld
    } else {
      isEmpty = !hasSome
      isPartial = hasSome
    }
  }

  /// The banners, with the most general first.
  public var banners: [Banner] {
    var result: [Banner] = []
    if owesErasure { result.append(.erasureOwed) }
    if isOffline { result.append(.offline) }
    if isStale { result.append(.staleData) }
    if isEmpty { result.append(.nothingCachedYet) }
    if isPartial { result.append(.partlyCached) }
    if needsNetwork, isOffline { result.append(.encryptedRequiresConnectivity) }
    if isUnsent { result.append(.queuedNotSent) }
    return result
  }
}
