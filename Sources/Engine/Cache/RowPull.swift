import Base
import Store
import Supabase
import Vault

/// A pull of a set of rows, between two pages: first what has changed, then, when it is
/// due, a reconcile. See `RowPuller`.
struct RowPull {
  enum Stage {
    /// Rows changed since the cursor.
    indirect case changes(after: Cursor?)
    /// Ids and versions of all rows: what is not among them was deleted or is no longer visible.
    indirect case versions(after: UUID?)
    /// Rows that the cache lacks or has in another version; the reconcile continues after `then`.
    indirect case missing([UUID], then: UUID)
  }

  private static var mostRows: Int { 500 }
  /// Ids in a URL.
  private static var mostIDs: Int { 100 }
  /// Rows that were committed late have an `updated_at` before the cursor; re-read the last 10 s.
  static var overlapS: Int64 { 10 }
  /// A reconcile that began so long ago is begun anew: rows that it has passed may be gone since.
  private static var longestReconcileMS: Int64 { 3_600_000 }

  let source: RowSource
  /// How many uploads had begun when the request was sent.
  var uploads: Int64 = 0
  /// From the first row, not from a stored cursor.
  let isWhole: Bool
  var stage: Stage
  /// The number of the set's last reading from the first row, or of its last reconcile. If another handle has begun
  /// one since, this pull ends.
  private(set) var round: Int64
  /// When its reconcile began; 0: it has not.
  private(set) var sinceMS: Int64 = 0
  /// Rows per page. After a failure pages are smaller, because the answer may have been too large for
  /// the host, or have taken the server too long; they grow while they come.
  private var pageSize: Int
  var rows: Int64 = 0
  var removed: Int64 = 0
  /// Rows that could not be used.
  private(set) var skipped: Int64 = 0
  /// Of the first row that could not be used.
  private(set) var fault: RowFault?
  /// The last page was stored.
  var isDone = false
  /// The pull is given up.
  var problem: ListProblem?

  /// `failures`: of the requests before it, in a row.
  init(_ source: RowSource, after cursor: Cursor?, round: Int64 = 0, failures: Int64 = 0) {
    self.source = source
    self.round = round
    isWhole = cursor == nil
    stage = .changes(after: cursor)
    pageSize = max(1, RowPull.mostRows >> failures)
  }

  /// Whether every row was read, and not only what has changed.
  var hasReadAll: Bool { isWhole || sinceMS != 0 }

  var isOver: Bool { isDone || problem != nil }

  mutating func count<Place>(_ page: Page<Place>) {
    skipped += Int64(page.skipped)
    fault = fault ?? page.fault
    if page.isCut { problem = .loop }
  }

  mutating func fail() { pageSize = max(1, pageSize / 2) }

  mutating func succeed() {
    pageSize = min(RowPull.mostRows, max(pageSize + 1, pageSize * 5 / 4))
  }

  /// No page was stored yet, and there was no cursor.
  var isAtStart: Bool {
    if case .changes(nil) = stage { return true }
    return false
  }

  func request(_ backend: Backend, _ bearer: SecretBytes) -> Request {
    switch stage {
    case .changes(let cursor):
      return RestRequests.page(
        backend, source, after: cursor, limit: pageSize, bearer: bearer)
    case .versions(let last):
      return RestRequests.versions(
        backend, source, after: last, limit: pageSize, bearer: bearer)
    case .missing(let ids, _):
      return RestRequests.rows(
        backend, source, ids: Array(ids.prefix(idsPerRequest)), bearer: bearer)
    }
  }

  private var idsPerRequest: Int { min(RowPull.mostIDs, pageSize) }

  /// The ids that are still to be asked for after a response to the first ones. If it brought some of
  /// those, the others may be missing because the server caps its pages: they are asked for again.
  func rest(of ids: [UUID], after received: [UUID]) -> [UUID] {
    let asked = ids.prefix(idsPerRequest)
    let known = SortedUUIDSet(received)
    let left = asked.filter { !known.contains($0) }
    return (left.count < asked.count ? left : []) + ids.dropFirst(idsPerRequest)
  }

  /// Begin at the first row. The number is random, because an erasure forgets those before.
  mutating func begin(in entry: DatasetTable.Entry) {
    entry.round = Int64(Random.word() >> 40)
    round = entry.round
  }

  /// Begin a reconcile, or continue one that was interrupted.
  mutating func reconcile(round: Int64, after last: UUID?, since: Int64) {
    self.round = round
    sinceMS = since
    stage = .versions(after: last)
  }

  /// Whether a reconcile that began then is too old to be continued. So is one that a clock which was
  /// wrong has begun.
  static func isOld(since: Int64, _ now: Instant) -> Bool {
    since > now.wallMS || now.wallMS - since >= longestReconcileMS
  }

  func isOld(_ now: Instant) -> Bool { sinceMS != 0 && RowPull.isOld(since: sinceMS, now) }
}
