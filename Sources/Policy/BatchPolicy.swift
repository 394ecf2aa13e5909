/// How much goes into one request.
public enum BatchPolicy {
  /// The hosted server publishes no limit; these keep a batch well under what was
  /// measured to work, and its loss cheap.
  public static let maxItems = 500
  public static let maxBytes = 1_000_000
  /// After an item was refused. With one bad item in a hundred, halving sends every item twice then
  /// instead of nearly five times; doubled by every batch that is stored.
  public static let carefulItems = 62

  /// After a failure one item finds out whether the server is back, before the rest follows.
  public static func items(probing: Bool) -> Int { probing ? 1 : maxItems }
}
