import Base
import Policy
import Store
import Supabase
import Vault

/// Refreshes and validates the session.
///
/// A refresh takes a lease and writes an intent in one transaction, so only one process sends it.
/// The response is stored in one transaction: tokens, generation + 1, intent cleared; only then are
/// the tokens used. An intent without a request in flight means that the response was lost before
/// it was stored. The server returns the same successor for the same token again, so the library
/// sends the stored token once more.
///
/// A response ends the session only if it proves the end (`SessionEnd`).
struct Refresh: Rules {
  /// How long a lease lasts: the request's time-out and grace.
  private static var leaseMS: Int64 { 25_000 }
  private static var leaseName: String { "refresh" }

  let parts: Parts

  // MARK: When

  func isNeeded(
    _ session: OpenSession, _ row: SessionRow, _ now: Instant
  ) throws(Failure) -> Bool {
    if tokens.isRefused { return true }
    if row.intentMS != 0, !inFlight.contains(.refresh) { return true }
    return try tokens.isExpired(row, now, marginMS: tokens.refreshMarginMS(session))
  }

  /// Whether no other living process is refreshing.
  func isFree(_ now: Instant) throws(Failure) -> Bool {
    guard
      let other = try core.leases.other(
        Refresh.leaseName, than: core.holder.bytes, now: try core.steady(now))
    else { return true }
    return !Holder.isAlive(other.holder, bootID: now.bootID)
  }

  /// How long another process's lease lasts; nil when the lease is free or ours.
  func heldForMS(_ now: Instant) throws(Failure) -> Int64? {
    let now = try core.steady(now)
    let other = try core.leases.other(Refresh.leaseName, than: core.holder.bytes, now: now)
    return other.map { $0.until - now }
  }

  func releaseLease() throws(Failure) {
    try core.leases.release(Refresh.leaseName, holder: core.holder.bytes)
  }

  // MARK: Refreshing

  /// Send a refresh, unless another process holds the lease or has changed the session.
  func send(_ session: OpenSession, _ now: Instant) throws(Failure) {
    guard try begin(session, now) else { return }
    try inFlight.send(
      AuthRequests.refresh(core.configuration.backend, token: session.refreshToken), .refresh,
      generation: session.generation, now)
  }

  /// Take the lease and write the intent in one step.
  private func begin(_ session: OpenSession, _ now: Instant) throws(Failure) -> Bool {
    try core.database.transaction { () throws(Failure) in
      guard try isFree(now) else { return false }
      let row = try sessions.row()
      guard row.generation == session.generation else { return false }
      try core.leases.take(
        Refresh.leaseName, holder: core.holder.bytes,
        until: try core.steadyToStore(now) + Refresh.leaseMS)
      row.intentMS = now.wallMS
      return try core.sessionTable.write(row, expecting: row.generation)
    }
  }

  /// Process the response to a refresh.
  func finish(
    _ generation: Int64, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if try sessions.row().generation == generation {
      switch AuthClassification.refresh(response.facts) {
      case .success:
        if let reply = try response.tokens(), reply.userID == sessions.session?.userID {
          try store(reply, generation, now)
        } else {
          if response.hasLongToken { problems.noteLongToken(now) }
          try keep(.refresh, response, now)
        }
      case .terminal(let reason): try sessions.end(.proved(reason, generation: generation))
      case .transient: try keep(.refresh, response, now)
      }
    }
    try releaseLease()
  }

  private func store(
    _ reply: TokenReply, _ generation: Int64, _ now: Instant
  ) throws(Failure) {
    guard let session = sessions.session else { return }
    let sealed = try session.vault.seal(
      Tokens(reply).json, SessionKeys.context("tokens", session.owner))
    let expiresMS = try core.expiryMS(of: reply, now)
    let serverMS = try core.serverMS(now)
    let isStored = try sessions.update(ifGeneration: generation) { (row) throws(Failure) in
      row.tokens = sealed
      row.expiresMS = expiresMS
      row.noteValidation(now, serverMS: serverMS)
      row.intentMS = 0
    }
    guard isStored else { return }
    tokens.replace(expiresMS: expiresMS, lifetimeMS: reply.expiresInS * 1000, now)
    reachability.noteSuccess()
    if check.hasFailed { check.ask(.discardingAnswer, now) }
    try pauses.spreadReads(now)
    try pauses.succeed(.refresh)
    if RefreshPolicy.isTooShort(lifetimeMS: reply.expiresInS * 1000) {
      try pauses.rest(.refresh, RefreshPolicy.restMS, now)
    }
    problems.note(lifetimeS: reply.expiresInS, now)
    _ = try sessions.reload(try sessions.row())
  }

  // MARK: Validating

  func sendValidation(_ session: OpenSession, _ now: Instant) throws(Failure) {
    try inFlight.send(
      AuthRequests.user(core.configuration.backend, bearer: session.accessToken), .validate,
      generation: session.generation, now)
  }

  /// Process the response to `GET /user`.
  func finishValidation(
    _ generation: Int64, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    switch AuthClassification.user(response.facts) {
    case .valid:
      // A portal may answer anything; only this user's object is an answer.
      guard let user = sessions.session?.userID, response.body?.uuid("id") == user else {
        return try keep(.validate, response, now)
      }
      tokens.confirm(now)
      reachability.noteSuccess()
      let serverMS = try core.serverMS(now)
      try sessions.patch(ifGeneration: generation) { (row) throws(Failure) in
        row.noteValidation(now, serverMS: serverMS)
      }
      try pauses.succeed(.validate)
    case .terminal(let reason): try sessions.end(.proved(reason, generation: generation))
    case .badJWT: tokens.refuse()
    case .transient: try keep(.validate, response, now)
    }
  }

  // MARK: Failures

  /// No proof of an end: keep the session, mark it stale, try again later.
  private func keep(
    _ purpose: Purpose, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    reachability.noteFailure()
    if check.isNeeded { check.fail() }
    try pauses.backOff(purpose, response, now)
  }

  /// The data service refused the access token: fetch a new one. When new ones are refused too, another
  /// one would not help, so requests of this purpose pause.
  func refuseToken(
    _ purpose: Purpose, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if isTokenRefusedAgain(now) { try pauses.backOff(purpose, response, now) }
  }

  /// A read failed: the cache stays as it is, reads of its purpose pause, and nothing else waits.
  func failRead(
    _ purpose: Purpose, _ outcome: RestOutcome, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if outcome == .needsToken { return try refuseToken(purpose, response, now) }
    reachability.noteFailure()
    try pauses.backOff(purpose, response, now)
  }

  /// Refresh the access token, which the server refused. Returns true, and keeps it for a while, when the
  /// server had refused another one shortly before.
  func isTokenRefusedAgain(_ now: Instant) -> Bool {
    guard let session = sessions.session else { return false }
    return tokens.refuse(session.tokenDigest, now)
  }
}

extension HTTPResponse {
  /// The tokens in the body; nil when it does not hold a session.
  func tokens() throws(Failure) -> TokenReply? {
    guard let body else { return nil }
    do throws(Failure) { return try TokenReply.read(body) } catch
      where error.code == .sessionInvalid
    {
      return nil
    }
  }

  /// Whether the body holds a token that is too long to be used.
  var hasLongToken: Bool { body.map { TokenReply.hasLongToken($0) } ?? false }
}
