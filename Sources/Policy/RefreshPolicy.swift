/// When an access token is renewed.
public enum RefreshPolicy {
  /// So long before its end: what is configured, but never more than a third of its life.
  public static func marginMS(configuredMS: Int64, lifetimeMS: Int64) -> Int64 {
    min(configuredMS, lifetimeMS / 3)
  }
}
