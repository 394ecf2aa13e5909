import Base
import Store
import Supabase

/// What holds uploads back though there is a network and an open session: an access token that has to be refreshed
/// first, and the pauses. `Scheduler` acts on the same facts.
extension Refresh {
  /// Whether nothing is sent before another access token is there.
  func awaitsToken(_ now: Instant) throws(Failure) -> Bool {
    guard let session = sessions.session else { return false }
    return try isNeeded(session, try sessions.row(), now)
  }

  /// The pause of the refresh that uploads wait for; nil when they wait for none, or it is sent next.
  func tokenPause(_ now: Instant) throws(Failure) -> ServicePauses.Shown? {
    try awaitsToken(now) ? pauses.shown(.refresh, now) : nil
  }

  /// Of that pause and the one of uploads the one that ends last: nothing is uploaded before.
  func uploadPause(_ now: Instant) throws(Failure) -> ServicePauses.Shown? {
    let own = try pauses.shown(.upload, now)
    guard let token = try tokenPause(now) else { return own }
    guard let own, own.untilMS > token.untilMS else { return token }
    return own
  }
}
