/// How many items an upload has.
///
/// While items are refused, each costs less in a small batch; a stored batch tells that larger ones may
/// pass. At a share p of bad items the size stays near 0.69 / p, where a request tells most.
///
/// "Too large" and "too slow" are said of one item at most twice in a row, because each half of a batch
/// is sent in turn. From the third time on the uploads are too large: the next is half as large.
public struct UploadSize: Sendable {
  /// The hosted server publishes no limit. These limits are well below what was measured to work, and
  /// sending a lost batch again stays cheap.
  public static let most = 500
  public static let mostBytes = 1_000_000
  /// On a full disk, a batch must fit into the log that is there.
  public static let tightItems = 32
  public static let tightBytes = 128_000
  /// The largest batch after an item was refused.
  private static let careful = 125
  /// No gateway's limit is smaller. If one calls a single item of this size too large, it refuses the
  /// item for something else.
  public static let smallBytes: Int64 = 16_384

  public private(set) var items = UploadSize.most
  private var tooLarge = 0

  public init() {}

  /// An upload of unknown items was refused for one of them.
  public mutating func refuse() { items = max(1, min(items * 7 / 10, UploadSize.careful)) }

  /// An upload of so many items was too large.
  public mutating func refuse(tooLarge count: Int) {
    tooLarge += 1
    if tooLarge > 2 { items = max(1, min(items, count / 2)) }
  }

  /// The service judged an upload.
  public mutating func judge() { tooLarge = 0 }

  /// An upload of so many items was stored. A smaller one tells less than the size promises.
  public mutating func store(_ count: Int) {
    if count >= items { items = min(items + max(1, items * 3 / 10), UploadSize.most) }
  }
}
