import Base
import Policy
import Store

/// Leased items that are sent in several requests, one after the other.
///
/// One commit leases them, and one settles all that was answered: a commit for each request would cost
/// more than the request. A process that is killed in between leaves leased items, like one that is killed
/// while a request is in flight: they are sent again.
final class UploadHand {
  /// All items, sorted by id.
  let all: UploadBatch
  let contents: [QueueItem]
  let hasUser: Bool
  /// The retry group, or the first one of several, each of which has an item at fault.
  let group: Int64
  /// By the monotonic clock.
  let sinceMS: Int64
  var search: BatchSearch
  /// The items that were found to be at fault, each alone.
  var faults: [(batch: UploadBatch, rejection: Rejection)] = []
  /// What is in flight, and its places.
  var sent: (batch: UploadBatch, part: [Int])?

  /// `groups`: of each item.
  init(
    _ all: UploadBatch, _ contents: [QueueItem], hasUser: Bool, groups: [Int64], _ now: Instant
  ) {
    self.all = all
    self.contents = contents
    self.hasUser = hasUser
    group = groups.min() ?? 0
    sinceMS = now.monotonicMS
    var guilty: [(group: Int64, places: [Int])] = []
    for (place, group) in groups.enumerated() where group & 1 == 1 {
      if let known = guilty.firstIndex(where: { $0.group == group }) {
        guilty[known].places.append(place)
      } else {
        guilty.append((group, [place]))
      }
    }
    guilty.sort { $0.group < $1.group }
    search = BatchSearch(count: contents.count, guilty: guilty.map { $0.places })
  }

  /// What was answered must be stored now.
  func isDue(_ now: Instant) -> Bool {
    now.monotonicMS - sinceMS >= BatchPolicy.maxUnsettledMS
  }

  /// Those of the items, which are sorted by sequence, at these places.
  func items(_ part: [Int], of leased: [Int64]) -> [UploadBatch.Item] {
    part.lazy.map { self.all.items[$0] }.filter { leased.sortedContains($0.sequence) }
  }
}
