/// What this process knows about reaching the server.
final class Reachability {
  /// The last value from the host; online until then.
  private(set) var isOnline = true
  /// Cached data counts as stale. Set when a refresh, validation, membership check, upload or read
  /// fails; cleared by a sign-in, refresh, validation or complete pull of contacts.
  private(set) var isFailing = false

  /// Returns true when the network has come back.
  func setOnline(_ isOnline: Bool) -> Bool {
    let cameOnline = isOnline && !self.isOnline
    self.isOnline = isOnline
    return cameOnline
  }

  func noteFailure() { isFailing = true }

  func noteSuccess() { isFailing = false }
}
