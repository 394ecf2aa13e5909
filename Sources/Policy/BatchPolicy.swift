/// The size of one upload.
public enum BatchPolicy {
  /// The hosted server publishes no limit. These limits are well below what was measured to work,
  /// and sending a lost batch again stays cheap.
  public static let maxItems = 500
  public static let maxBytes = 1_000_000
  /// The largest batch after an item was refused. Every stored batch doubles it again. With one bad
  /// item in a hundred, bisecting batches of this size sends every item twice; with full batches it
  /// would send each nearly five times.
  public static let carefulItems = 62
  /// No gateway's limit is smaller. If one calls a single item of this size too large, it refuses the item
  /// for something else.
  public static let smallBytes: Int64 = 16_384

  /// On a full disk, a batch must fit into the log that is there.
  public static let tightItems = 32
  public static let tightBytes = 128_000

  /// After a failure, a single item probes whether the server has recovered.
  public static func items(probing: Bool, isTight: Bool = false) -> Int {
    probing ? 1 : isTight ? tightItems : maxItems
  }

  public static func bytes(isTight: Bool) -> Int { isTight ? tightBytes : maxBytes }
}
