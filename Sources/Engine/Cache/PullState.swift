/// What is to be pulled, and how far the pull under way has got.
final class PullState {
  private let revision: Revision
  /// The contacts are to be pulled, whatever their age.
  private(set) var needsContacts = false { didSet { revision.advance() } }
  /// The summary is to be pulled, whatever its age.
  private(set) var needsSummary = false { didSet { revision.advance() } }
  /// The pull of contacts that is between two pages.
  private(set) var current: ContactPull? { didSet { revision.advance() } }
  /// When the contacts were last pulled to the end, by the monotonic clock.
  private(set) var contactsMS: Int64? { didSet { revision.advance() } }
  /// When the summary was last pulled, by the monotonic clock.
  private(set) var summaryMS: Int64? { didSet { revision.advance() } }

  init(_ revision: Revision) { self.revision = revision }

  func requirePull() {
    needsContacts = true
    needsSummary = true
  }

  /// The rows of the pages before are gone: begin anew.
  func restart() {
    current = nil
    requirePull()
  }

  /// Forget the pull under way; the next one goes on from the stored cursor.
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
