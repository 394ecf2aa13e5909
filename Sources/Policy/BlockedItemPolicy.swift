/// How often, and how long, an item is tried that something on the way to the service refuses, for
/// instance a firewall.
///
/// Each such refusal adds to the item's count. It adds more once the service has judged another upload
/// since the first one: then only this item is refused. Until then perhaps every upload is, because of
/// a gateway's mistake, which no item should be parked for soon. So an item is parked after seven
/// refusals in three to five hours, or after up to twenty-one in about half a day.
///
/// An answer that an outage gives, too (a proxy's page, 503, none), adds to the count only if the
/// service has judged another upload since the one before.
public enum BlockedItemPolicy {
  /// An item with this count is parked.
  public static let limit: Int64 = 21
  /// The longest pause.
  public static let maxPauseMS: Int64 = 90 * 60_000
  /// From this number of new items on that were refused one after the other, uploads back off.
  public static let maxInARow = 4

  /// The count after one more refusal. It is above 0 from the first one on. `mayPass`: an outage gives
  /// the same answer.
  public static func count(
    after count: Int64, othersWereJudged: Bool, mayPass: Bool
  ) -> Int64 {
    if othersWereJudged { return count + 3 }
    return mayPass ? max(count, 1) : count + 1
  }

  /// The pause of an item with this count: 5 min, doubling to an hour, and up to half as long again,
  /// so that many items spread.
  public static func pauseMS(count: Int64, random: UInt64) -> Int64 {
    let step: Int64
    switch count {
    case ...3: step = 5
    case ...6: step = 10
    case ...9: step = 20
    case ...12: step = 40
    default: step = 60
    }
    let leastMS = step * 60_000
    let jitterMS = random.multipliedFullWidth(by: UInt64(clamping: leastMS / 2) + 1).high
    return leastMS + Int64(clamping: jitterMS)
  }
}
