/// The size of one upload.
public enum BatchPolicy {
  /// The hosted server publishes no limit. These limits are well below what was measured to work,
  /// and sending a lost batch again stays cheap.
  public static let maxItems = 500
  public static let maxBytes = 1_000_000
  /// The largest batch after an item was refused (`BatchSize`).
  public static let carefulItems = 125
  /// While items are refused, so many batches are leased by one commit, and settled by one.
  public static let requestsInLease = 8
  /// What was answered is stored after so long at the latest, while other batches of the lease are sent.
  public static let maxUnsettledMS: Int64 = 2000
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
