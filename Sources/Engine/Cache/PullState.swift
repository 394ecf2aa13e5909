import Base
import Supabase

/// The pulls that are needed, and the positions of the running ones.
final class PullState {
  /// A set of rows that the configuration names, and its pull.
  struct Rows {
    /// nil: the contacts.
    let kind: QueueKind?
    /// It must be pulled, whatever its age.
    fileprivate(set) var isNeeded = false
    /// The pull that is between two pages.
    fileprivate(set) var pull: RowPull?
    /// When a pull last completed, by the monotonic clock.
    fileprivate(set) var finishedMS: Int64?

    fileprivate init(_ kind: QueueKind?) { self.kind = kind }
  }

  /// Contacts, then the user's own rows of each kind; one that fails goes to the end, so that it holds up no other.
  private(set) var rows: [Rows] = []
  /// The summary must be pulled, whatever its age.
  private(set) var needsSummary = false
  /// When the summary was last pulled, by the monotonic clock.
  private(set) var summaryMS: Int64?

  init(_ backend: Backend) {
    if backend.has(.contacts) { rows.append(Rows(nil)) }
    for kind in backend.kinds where kind.own != nil { rows.append(Rows(kind)) }
  }

  func requirePull() {
    for index in rows.indices { rows[index].isNeeded = true }
    needsSummary = true
  }

  /// Begin every pull anew, at the stored cursors: the rows of earlier pages may be gone.
  func restart() {
    for index in rows.indices { rows[index].pull = nil }
    requirePull()
  }

  func forgetAll() {
    rows = rows.map { Rows($0.kind) }
    needsSummary = false
    summaryMS = nil
  }

  /// When the oldest of the completed pulls was, by the monotonic clock.
  var oldestMS: Int64? { (rows.map { $0.finishedMS } + [summaryMS]).compactMap { $0 }.min() }

  private func index(of pull: RowPull) -> Int? {
    rows.firstIndex { $0.kind === pull.source.kind }
  }

  /// Whether the set of this pull is being pulled: nothing has stopped it.
  func isUnderWay(_ pull: RowPull) -> Bool {
    index(of: pull).map { rows[$0].pull != nil } ?? false
  }

  /// The first page is asked for. What makes a pull needed from now on, this one may miss.
  func begin(_ pull: RowPull) {
    guard let index = index(of: pull) else { return }
    rows[index].isNeeded = false
    rows[index].pull = pull
  }

  /// The request for a page failed: the other sets come first.
  func fail(_ pull: RowPull) {
    proceed(pull)
    guard let index = index(of: pull) else { return }
    rows.append(rows.remove(at: index))
  }

  /// The next page follows, if nothing has stopped the pull.
  func proceed(_ pull: RowPull) {
    if let index = index(of: pull), rows[index].pull != nil { rows[index].pull = pull }
  }

  func finish(_ pull: RowPull, _ monotonicMS: Int64) {
    guard let index = index(of: pull) else { return }
    rows[index].pull = nil
    rows[index].finishedMS = monotonicMS
  }

  func finishSummary(_ monotonicMS: Int64) {
    needsSummary = false
    summaryMS = monotonicMS
  }
}
