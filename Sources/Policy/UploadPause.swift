/// How long an item waits for itself that fails alone, and how often it is tried.
///
/// Each item counts its failures alone. The first ones take it through the pauses of a service, so a
/// healthy item that an outage hits waits no longer than uploads do. From the eighth on it waits 5 min,
/// doubling to an hour; an item that the service itself fails for, up to a day, because who mends a
/// server can wait for that or ask for it. What something on the way refuses for certain starts there.
///
/// So an item that is refused on the way beside others is parked after seven refusals, in three to five
/// hours. While nothing else of its kind is stored, a gateway may refuse them all: then after sixteen,
/// in more than half a day.
public enum UploadPause {
  /// From this number on, failures are many: pauses are no longer those of a service.
  public static let manyAttempts = 8
  private static let certain = Int64(manyAttempts)
  private static let lastBesideOthers = certain + 6
  private static let lastOfAll = certain + 15
  private static let firstMS: Int64 = 300_000
  private static let hourMS: Int64 = 3_600_000

  /// The longest pause of an item that the service fails for.
  public static let longestMS: Int64 = 86_400_000
  /// The longest pause of an item that is refused on the way.
  public static let longestOnTheWayMS = hourMS + hourMS / 2

  /// The number of failures after one more. `othersSince`: another item of its kind was stored since the
  /// last one; `othersQueued`: others of its kind wait, perhaps for the same reason.
  public static func count(
    after count: Int64, _ failure: UploadFailure, othersSince: Bool, othersQueued: Bool
  ) -> Int64 {
    let known = max(count, 0)
    if failure == .firewall { return max(known, certain - 1) + 1 }
    if known < certain || othersSince { return known + 1 }
    // Nothing shows that it is the item's fault.
    return failure == .service && !othersQueued ? min(known + 1, max(known, certain + 4)) : known
  }

  /// Whether an item with so many failures is parked if something on the way refuses it once more.
  public static func isLast(after count: Int64, othersSince: Bool) -> Bool {
    count + 1 >= (othersSince ? lastBesideOthers : lastOfAll)
  }

  /// The pause of an item with so many failures, with a part that spreads many items, by 64 random bits.
  public static func pauseMS(
    _ count: Int64, _ failure: UploadFailure, othersSince: Bool, random: UInt64
  ) -> Int64 {
    if count < certain { return Backoff.delayMS(attempt: Int(count), random: random) }
    let longest = failure == .service && othersSince ? longestMS * 2 / 3 : hourMS
    let least = min(firstMS << min(count - certain, 10), longest)
    return least + Backoff.jitterMS(upTo: least / 2, random)
  }
}

extension UploadPause {
  /// Whether to ask about an id that nobody has, after uploads have failed so many times in a row: ever
  /// more rarely, because an outage is to cost one request for each pause.
  public static func mayAskControl(after failures: Int64) -> Bool {
    failures & (failures &- 1) == 0
  }
}

/// Whether uploads get through: all of them, or those of one batch key.
public struct Passage: Sendable {
  /// An older success says little. The longest wait of our own is shorter.
  private static let maxAgeMS: Int64 = 600_000
  /// How many failures in a row one item explains: each half of a batch is sent in turn.
  private static let maxFailures = 2
  /// From this number of new items on that are refused on the way one after the other, perhaps all are.
  private static let manyFailures = 4

  private var judgedMS: Int64?
  private var failures = 0
  private var waits = 0

  public init() {}

  /// All waited, and nothing was judged since: the next upload finds out with one item.
  public var isProbing: Bool { waits > 0 }

  /// So many failed in a row that perhaps all do, although the way is open.
  public var hasManyFailures: Bool { failures >= Passage.manyFailures }

  /// The service judged an upload: it stored items, or refused them for what they are.
  public mutating func judge(at nowMS: Int64) { (judgedMS, failures, waits) = (nowMS, 0, 0) }

  /// An upload failed, and the failure blames no item. Returns whether uploads get through nevertheless.
  public mutating func fail(at nowMS: Int64) -> Bool {
    failures += 1
    return works(at: nowMS)
  }

  public func works(at nowMS: Int64) -> Bool {
    guard let judgedMS, nowMS - judgedMS <= Passage.maxAgeMS else { return false }
    return failures <= Passage.maxFailures
  }

  /// All wait. Returns how many times in a row they did.
  public mutating func wait() -> Int {
    waits += 1
    return waits
  }
}

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
