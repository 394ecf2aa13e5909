/// What this process knows about reaching the server.
final class Reachability {
  private let revision: Revision
  /// What the host said last; online until it says otherwise.
  private(set) var isOnline = true { didSet { revision.advance() } }
  /// The last refresh, validation or read failed: cached data counts as stale.
  private(set) var isFailing = false

  init(_ revision: Revision) { self.revision = revision }

  /// Returns true when the network has come back.
  func setOnline(_ isOnline: Bool) -> Bool {
    let cameOnline = isOnline && !self.isOnline
    self.isOnline = isOnline
    return cameOnline
  }

  func noteFailure() { isFailing = true }

  func noteSuccess() { isFailing = false }
}
