import Base
import Supabase
import Vault

/// One organisation's contacts on their way from the server, page by page: first what has changed,
/// then, when it is due, a reconcile.
///
/// Whether a page is the last one is read from the pages, not from what was asked for: servers cap
/// them as they like (PostgREST's `db-max-rows`), and say nothing of it.
struct ContactsPull {
  enum Stage {
    /// Rows changed since the cursor.
    indirect case changes(after: Cursor?)
    /// Ids and versions of all that is there: what is not among them was deleted or is no longer
    /// visible.
    indirect case versions(after: UUID?)
    /// Rows that a reconcile missed in the cache, or found in another version; then on behind `then`.
    indirect case missing([UUID], then: UUID)
  }

  /// Rows in a page that is asked for.
  static var pageSize: Int { 500 }
  /// Ids in a URL.
  static var idsAtOnce: Int { 100 }
  /// Rows committed late stand behind the cursor; a statement lasts at most this long.
  static var overlapS: Int64 { 10 }

  let org: UUID
  /// From the beginning, not from where an earlier one got to.
  let isWhole: Bool
  var stage: Stage
  /// The number of its reconcile. One that another process began meanwhile takes over.
  private(set) var round: Int64 = 0
  /// How many rows the page before had.
  private var before: Int?
  /// Rows taken in, rows removed, and rows that could not be used.
  var rows: Int64 = 0
  var removed: Int64 = 0
  var skipped: Int64 = 0

  init(org: UUID, after cursor: Cursor?) {
    self.org = org
    isWhole = cursor == nil
    stage = .changes(after: cursor)
  }

  /// Nothing of it has come yet, and nothing came before it.
  var isAtStart: Bool {
    if case .changes(nil) = stage { return true }
    return false
  }

  func request(_ backend: Backend, _ bearer: SecretBytes) -> Request {
    switch stage {
    case .changes(let cursor):
      return RestRequests.contactsPage(
        backend, org: org, after: cursor, limit: ContactsPull.pageSize, bearer: bearer)
    case .versions(let last):
      return RestRequests.contactVersions(
        backend, org: org, after: last, limit: ContactsPull.pageSize, bearer: bearer)
    case .missing(let ids, _):
      return RestRequests.contacts(
        backend, org: org, ids: Array(ids.prefix(ContactsPull.idsAtOnce)), bearer: bearer)
    }
  }

  /// Whether a page of so many rows was the last one; counts it.
  mutating func isLast(_ count: Int) -> Bool {
    defer { before = count }
    guard count > 0 else { return true }
    guard let before else { return false }
    return count < before
  }

  /// Begin a reconcile, or go on with one that was interrupted.
  mutating func reconcile(round: Int64, after last: UUID?) {
    self.round = round
    stage = .versions(after: last)
    before = nil
  }
}

/// Why a pull was given up. The raw values are the stable codes of the C API.
enum PullProblem: String {
  /// The server sends the same page again and again.
  case loop
}

/// What became of a pull by one page.
struct PullStep {
  var pull: ContactsPull
  var isDone = false
  /// It is given up.
  var problem: PullProblem?
  /// What was read before had to go.
  var hasErased = false

  init(_ pull: ContactsPull) { self.pull = pull }

  var isOver: Bool { isDone || problem != nil }
}

/// What is to be pulled.
struct PullState {
  var contacts = false
  var summary = false
  var current: ContactsPull?
  /// When the contacts were last pulled, and the summary, by the monotonic clock.
  var lastMS: Int64?
  var summaryMS: Int64?
}
