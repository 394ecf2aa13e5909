/// Decides when an access token is refreshed.
public enum RefreshPolicy {
  /// The least time between two refreshes that succeed. Tokens that live shorter are of no use in between.
  public static var restMS: Int64 { 30_000 }

  /// Whether tokens of this lifetime would be refreshed more often than that.
  public static func isTooShort(lifetimeMS: Int64) -> Bool { lifetimeMS < restMS }

  /// How long before its expiry: as configured, but at most a third of its lifetime.
  public static func marginMS(configuredMS: Int64, lifetimeMS: Int64) -> Int64 {
    min(configuredMS, lifetimeMS / 3)
  }
}
