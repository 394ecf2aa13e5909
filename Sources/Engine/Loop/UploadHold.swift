import Base
import Policy
import Store
import Supabase

/// What holds uploads back though there is a network and an open session: an access token that has to
/// be refreshed first, and the pauses after failures. `Scheduler` acts on the same facts.
final class UploadHold: Part {
  private let refresh: Refresh

  init(_ shared: Shared, refresh: Refresh) {
    self.refresh = refresh
    super.init(shared)
  }

  /// Whether nothing is sent before another access token is there.
  func awaitsToken(_ now: Instant) throws(Failure) -> Bool {
    guard let session = sessions.session else { return false }
    return try refresh.isNeeded(session, try sessions.row(), now)
  }

  /// The pause of the refresh that uploads wait for; nil when they wait for none, or it is sent next.
  func tokenPause(_ now: Instant) throws(Failure) -> ServicePauses.Shown? {
    try awaitsToken(now) ? pauses.shown(.refresh, now) : nil
  }

  /// The pause of uploads themselves.
  func ownPause(_ now: Instant) throws(Failure) -> ServicePauses.Shown? {
    try pauses.shown(.upload, now)
  }

  /// The one of both that ends last: nothing is uploaded before.
  func longestPause(_ now: Instant) throws(Failure) -> ServicePauses.Shown? {
    guard let token = try tokenPause(now) else { return try ownPause(now) }
    guard let own = try ownPause(now), own.untilMS > token.untilMS else { return token }
    return own
  }
}
