/// How much goes into one request.
public enum BatchPolicy {
  /// The hosted server publishes no limit; these keep a batch well under what was
  /// measured to work, and its loss cheap.
  public static let mostItems = 500
  public static let mostBytes = 1_000_000

  /// After a failure one item finds out whether the server is back, before the rest follows.
  public static func items(probing: Bool) -> Int { probing ? 1 : mostItems }
}
