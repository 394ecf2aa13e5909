import Base
import Policy
import Store
import Supabase
import Vault

/// The access token for the host's own calls, to storage, realtime and functions.
///
/// The library alone refreshes the session, so the host asks for the token before a call and keeps
/// none. A host that has asked once on this handle is told when there is another one.
struct SessionToken: Rules {
  /// The next `holdfast_next` sends the refresh; its response usually comes within this time.
  private static var responseMS: Int64 { 1000 }

  let parts: Parts

  /// The token of the open session, unless it is about to end or the server refused it.
  func get(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let session = try decider.requireSession()
    let row = try sessions.row()
    let now = core.clock.now()
    if try refresh.isNeeded(session, row, now) {
      hostView.toldToken = []
      throw Failure(
        .sessionRefreshing, "another access token is needed; holdfast_next asks for it",
        detail: ["wait_ms": JSON(try waitMS(now))])
    }
    hostView.toldToken = session.tokenDigest
    return ["access_token": session.accessToken.json, "expires_ms": .int(row.expiresMS)]
  }

  /// When to ask again at the latest; nil without a network.
  private func waitMS(_ now: Instant) throws(Failure) -> Int64? {
    guard reachability.isOnline else { return nil }
    return max(SessionToken.responseMS, try pauses.leftMS(.refresh, now))
  }

  /// Tell the host that there is another token than the one it has. The answer does not hold it.
  func announce() throws(Failure) {
    guard let (session, row) = try otherToken() else { return }
    news.discard("session_token")
    try news.answer("session_token", ["expires_ms": .int(row.expiresMS)])
    hostView.toldToken = session.tokenDigest
  }

  /// Whether there is another token to tell of.
  func hasNews() throws(Failure) -> Bool { try otherToken() != nil }

  /// The session, if its token is another one than the host has.
  private func otherToken() throws(Failure) -> (OpenSession, SessionRow)? {
    guard let told = hostView.toldToken, let assessment = try decider.assessUnchanged(),
      decider.canUse(assessment.situation), let session = sessions.session,
      session.tokenDigest != told,
      try !refresh.isNeeded(session, assessment.row, core.clock.now())
    else { return nil }
    return (session, assessment.row)
  }
}
