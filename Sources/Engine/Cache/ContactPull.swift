import Base
import Supabase
import Vault

/// A pull of one organisation's contacts, between two pages: first what has changed, then, when it is
/// due, a reconcile. See `ContactPuller`.
struct ContactPull {
  enum Stage {
    /// Rows changed since the cursor.
    indirect case changes(after: Cursor?)
    /// Ids and versions of all rows: what is not among them was deleted or is no longer visible.
    indirect case versions(after: UUID?)
    /// Rows that the cache lacks or has in another version; the reconcile continues after `then`.
    indirect case missing([UUID], then: UUID)
  }

  /// Rows per page.
  static var pageSize: Int { 500 }
  /// Ids in a URL.
  static var idsPerRequest: Int { 100 }
  /// Rows that were committed late have an `updated_at` before the cursor; re-read the last 10 s.
  static var overlapS: Int64 { 10 }

  /// nil in an app without organisations.
  let org: UUID?
  /// From the first row, not from a stored cursor.
  let isWhole: Bool
  var stage: Stage
  /// The number of its reconcile. If another process has begun one since, this pull ends.
  private(set) var round: Int64 = 0
  var rows: Int64 = 0
  var removed: Int64 = 0
  /// Rows that could not be used.
  var skipped: Int64 = 0

  init(org: UUID?, after cursor: Cursor?) {
    self.org = org
    isWhole = cursor == nil
    stage = .changes(after: cursor)
  }

  /// No page was stored yet, and there was no cursor.
  var isAtStart: Bool {
    if case .changes(nil) = stage { return true }
    return false
  }

  func request(_ backend: Backend, _ bearer: SecretBytes) -> Request {
    switch stage {
    case .changes(let cursor):
      return RestRequests.contactsPage(
        backend, org: org, after: cursor, limit: ContactPull.pageSize, bearer: bearer)
    case .versions(let last):
      return RestRequests.contactVersions(
        backend, org: org, after: last, limit: ContactPull.pageSize, bearer: bearer)
    case .missing(let ids, _):
      return RestRequests.contacts(
        backend, org: org, ids: Array(ids.prefix(ContactPull.idsPerRequest)), bearer: bearer)
    }
  }

  /// Whether a page with this number of rows is the last one: only an empty one is. A short page may
  /// be short because the server caps its pages (PostgREST's `db-max-rows`), which it does not say,
  /// and the cap may change between two pages.
  static func isLast(_ count: Int) -> Bool { count == 0 }

  /// The ids that are still to be asked for after a response to the first ones. If it brought some of
  /// those, the others may be missing because the server caps its pages: they are asked for again.
  static func rest(of ids: [UUID], after received: [UUID]) -> [UUID] {
    let asked = ids.prefix(idsPerRequest)
    let left = asked.filter { !received.contains($0) }
    return (left.count < asked.count ? left : []) + ids.dropFirst(idsPerRequest)
  }

  /// Begin a reconcile, or continue one that was interrupted.
  mutating func reconcile(round: Int64, after last: UUID?) {
    self.round = round
    stage = .versions(after: last)
  }
}

/// Why a pull was given up. The raw values are stable codes of the C API.
enum PullProblem: String {
  /// The server sent a page that does not continue the one before.
  case loop
}

/// What one page did to a pull.
struct PullStep {
  var pull: ContactPull
  var isDone = false
  /// The pull is given up.
  var problem: PullProblem?
  /// Rows that were read before were erased.
  var hasErased = false

  init(_ pull: ContactPull) { self.pull = pull }

  var isOver: Bool { isDone || problem != nil }
}
