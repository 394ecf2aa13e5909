/// Decides when an access token is refreshed.
public enum RefreshPolicy {
  /// How long before its expiry: as configured, but at most a third of its lifetime.
  public static func marginMS(configuredMS: Int64, lifetimeMS: Int64) -> Int64 {
    min(configuredMS, lifetimeMS / 3)
  }
}
