/// How often, and how long, an item is tried that something on the way to the service refuses, for
/// instance a firewall.
///
/// Each such refusal adds to the item's count. It adds more once another item of its kind got through
/// since the first one: then only this item is refused. Until then perhaps every upload is, because of
/// a gateway's mistake, which no item should be parked for soon. So an item is parked after seven
/// refusals in three to five hours, or after up to twenty-one in about half a day.
///
/// An answer that an outage gives, too (a proxy's page, 503, none), adds to the count only if another
/// item got through since the one before, and not at the first failures: a healthy item may be hit several
/// times by a gateway that fails now and then, and waits no longer for that than uploads do.
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
    after count: Int64, tries: Int, othersGotThrough: Bool, mayPass: Bool
  ) -> Int64 {
    if mayPass, tries < Backoff.aloneAfter { return max(count, 1) }
    if othersGotThrough { return count + 3 }
    return mayPass ? max(count, 1) : count + 1
  }

  /// The pause of an item with this count: 5 min, doubling to an hour, and up to half as long again,
  /// so that many items spread. At the first failures that an outage gives, too, that of an upload.
  public static func pauseMS(
    count: Int64, tries: Int, mayPass: Bool, random: UInt64
  ) -> Int64 {
    if mayPass, tries < Backoff.aloneAfter {
      return Backoff.delayMS(attempt: tries, random: random)
    }
    let step: Int64
    switch count {
    case ...3: step = 5
    case ...6: step = 10
    case ...9: step = 20
    case ...12: step = 40
    default: step = 60
    }
    let leastMS = step * 60_000
    return leastMS + Backoff.jitterMS(upTo: leastMS / 2, random)
  }
}
