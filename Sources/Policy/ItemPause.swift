/// How long an item waits for itself that fails alone, and how often it is tried.
///
/// Each item counts its failures alone. The first ones take it through the pauses of a service, so a
/// healthy item that an outage hits waits no longer than uploads do. From the eighth on it waits 5 min,
/// doubling to an hour; an item that the service itself fails for while it stores others, up to a day: whoever
/// repairs the server can have it sent sooner. What something on the way refuses for certain starts at 5 min.
///
/// So an item that is only refused on the way, beside others, is parked after seven refusals, in three to five
/// hours. While nothing else of its kind is stored, a gateway may refuse them all: then after sixteen,
/// in more than half a day.
public enum ItemPause {
  /// From this number on, failures are many: pauses are no longer those of a service.
  public static let manyAttempts = 8
  private static let certain = Int64(manyAttempts)
  private static let lastBesideOthers = certain + 6
  private static let lastOfAll = certain + 15
  private static let firstMS: Int64 = 300_000
  private static let hourMS: Int64 = 3_600_000
  /// A count holds two numbers: that of refusals on the way, which begin with the eighth, on top of the first seven
  /// failures of any sort; and, times this, that of the service's further failures, none of which parks an item.
  private static let ofService: Int64 = 1024

  /// The longest pause of an item that the service fails for.
  static let longestMS: Int64 = 86_400_000

  /// The number of failures after one more. `othersSince`: another item of its kind was stored since the
  /// last one; `othersQueued`: others of its kind wait, perhaps for the same reason.
  public static func count(
    after count: Int64, _ failure: UploadFailure, othersSince: Bool, othersQueued: Bool
  ) -> Int64 {
    let known = min(max(count, 0), .max - ofService)
    let refusals = known % ofService
    var next = known
    switch failure {
    case .firewall: next += max(certain - refusals, 1)
    // Nothing shows that it is the item's fault, unless others are stored.
    case .gateway: next += refusals < certain || othersSince ? 1 : 0
    case .service:
      let most = othersSince ? ofService - 1 : othersQueued ? certain : certain + 4
      if number(known) < most { next += refusals < certain - 1 ? 1 : ofService }
    }
    return next
  }

  /// Whether an item with so many failures is parked if something on the way refuses it once more.
  public static func isLast(after count: Int64, othersSince: Bool) -> Bool {
    max(count, 0) % ofService + 1 >= (othersSince ? lastBesideOthers : lastOfAll)
  }

  /// The pause of an item with so many failures, with a part that spreads many items, by 64 random bits.
  public static func pauseMS(
    _ count: Int64, _ failure: UploadFailure, othersSince: Bool, random: UInt64
  ) -> Int64 {
    let number = number(count)
    if number < certain { return Backoff.delayMS(attempt: Int(number), random: random) }
    let longest = failure == .service && othersSince ? longestMS * 2 / 3 : hourMS
    let least = min(firstMS << min(number - certain, 10), longest)
    return least + Backoff.jitterMS(upTo: least / 2, random)
  }

  /// How many failures a count holds.
  private static func number(_ count: Int64) -> Int64 {
    max(count, 0) % ofService + max(count, 0) / ofService
  }
}

extension ItemPause {
  /// Whether to ask about an id that nobody has, after uploads have failed so many times in a row: ever
  /// more rarely, because an outage is to cost one request for each pause.
  public static func mayAskControl(after failures: Int64) -> Bool {
    failures & (failures &- 1) == 0
  }
}
