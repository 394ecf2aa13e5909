/// The pulls that are needed, and the position of the running one.
final class PullState {
  private let revision: Revision
  /// The contacts must be pulled, whatever their age.
  private(set) var needsContacts = false { didSet { revision.advance() } }
  /// The summary must be pulled, whatever its age.
  private(set) var needsSummary = false { didSet { revision.advance() } }
  /// The pull of contacts that is between two pages.
  private(set) var current: ContactPull? { didSet { revision.advance() } }
  /// When a pull of contacts last completed, by the monotonic clock.
  private(set) var contactsMS: Int64? { didSet { revision.advance() } }
  /// When the summary was last pulled, by the monotonic clock.
  private(set) var summaryMS: Int64? { didSet { revision.advance() } }

  init(_ revision: Revision) { self.revision = revision }

  func requirePull() {
    needsContacts = true
    needsSummary = true
  }

  /// The rows of the earlier pages are gone: start again.
  func restart() {
    current = nil
    requirePull()
  }

  /// Forget the running pull; the next one starts at the stored cursor.
  func forgetProgress() { current = nil }

  func forgetAll() {
    needsContacts = false
    needsSummary = false
    current = nil
    contactsMS = nil
    summaryMS = nil
  }

  /// A page of contacts arrived.
  func begin(_ pull: ContactPull) {
    needsContacts = false
    current = pull
  }

  /// The next page follows.
  func proceed(_ pull: ContactPull) { current = pull }

  func finishContacts(_ monotonicMS: Int64) {
    current = nil
    contactsMS = monotonicMS
  }

  func finishSummary(_ monotonicMS: Int64) {
    needsSummary = false
    summaryMS = monotonicMS
  }
}
