import Base
import Policy
import Store
import Supabase
import Vault

/// Sealed orders to end a session at the server. The order runs later, with any user or none.
///
/// GoTrue answers a logout with an expired access token with 403 `bad_jwt` and keeps the session, so
/// an order with an expired token refreshes first.
///
/// An order for all sessions of a user who has signed in here again since ends all sessions but the
/// new one, with the new one's token.
struct Revocation: Rules {
  /// What a request of an order does.
  enum Step { case refresh, logout, logoutOfOthers }

  /// In the place of the number of an order that is not stored: SQLite's numbers begin with 1.
  private static var unsealed: Int64 { 0 }
  /// Leased for 30 s by the sender.
  private static var leaseMS: Int64 { 30_000 }
  /// How often an order asks whether the user's new session can be used.
  private static var heldMS: Int64 { 60_000 }
  /// An access token this close to its end is refreshed first.
  private static var marginMS: Int64 { 5000 }

  let parts: Parts

  private static var context: SealContext { SealContext(table: "revocation", column: "sealed") }

  /// Whether these bytes are an order that was sealed on this device.
  static func isOrder(_ sealed: [UInt8], _ keys: KeyRing.Keys) throws(Failure) -> Bool {
    try keys.revocations.openJSON(sealed, context) != nil
  }

  // MARK: Ordering

  func add(_ session: OpenSession, expiresMS: Int64, global: Bool = false) throws(Failure) {
    try add(
      access: session.accessToken, refresh: session.refreshToken, expiresMS: expiresMS,
      allOf: global ? session.userID : nil)
  }

  /// Order the end of a session that was issued but is not used. Without the device key no order can be
  /// sealed: then one request is sent, and not repeated.
  func add(_ reply: TokenReply, _ now: Instant) throws(Failure) {
    do throws(Failure) {
      try add(
        access: reply.accessToken, refresh: reply.refreshToken,
        expiresMS: try core.expiryMS(of: reply, now), allOf: nil)
    } catch {
      guard error.code.status == .keyStore else { throw error }
      try inFlight.send(
        try AuthRequests.logout(core.configuration.backend, bearer: reply.accessToken, .local),
        .revoke(job: Revocation.unsealed, .logout), generation: 0, now)
    }
  }

  private func add(
    access: SecretBytes, refresh: SecretBytes, expiresMS: Int64, allOf user: UUID?
  ) throws(Failure) {
    let order: JSON = [
      "refresh_token": refresh.json, "access_token": access.json,
      "expires_ms": .int(expiresMS), "all_of": user.map { JSON.uuid($0) } ?? .null,
    ]
    _ = try core.revocations.add(
      sealed: try core.keys().revocations.seal(order, Revocation.context))
  }

  // MARK: Carrying out

  /// `owner`: whose session is stored here; `session`: the same session, if its token may be used.
  func send(
    _ job: RevocationTable.Job, owner: [UInt8]?, _ session: OpenSession?, _ now: Instant
  ) throws(Failure) {
    guard let keys = core.keyRing.keys,
      let order = try keys.revocations.openJSON(job.sealed, Revocation.context),
      let access = try Revocation.token("access_token", in: order),
      let refresh = try Revocation.token("refresh_token", in: order)
    else {
      // Sealed with a lost key: the order can never run.
      try core.revocations.remove(job.id)
      return
    }
    let backend = core.configuration.backend
    let user = order.uuid("all_of")
    let request: Request
    let step: Step
    if let user, owner == keys.userTag(user) {
      guard let session else {
        return try core.revocations.lease(
          job.id, until: try core.steadyToStore(now) + Revocation.heldMS)
      }
      step = .logoutOfOthers
      request = try AuthRequests.logout(backend, bearer: session.accessToken, .others)
    } else if try core.serverMS(now) >= (order.int("expires_ms") ?? 0) - Revocation.marginMS {
      step = .refresh
      request = try AuthRequests.refresh(backend, token: refresh, purpose: .revoke)
    } else {
      step = .logout
      request = try AuthRequests.logout(backend, bearer: access, user == nil ? .local : .global)
    }
    try core.revocations.lease(job.id, until: try core.steadyToStore(now) + Revocation.leaseMS)
    try inFlight.send(request, .revoke(job: job.id, step), generation: 0, now)
  }

  private static func token(
    _ name: StaticCString, in order: JSON
  ) throws(Failure) -> SecretBytes? {
    guard let value = order[name] else { return nil }
    return try SecretBytes.text(of: value)
  }

  func finish(
    _ id: Int64, _ step: Step, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let keys = core.keyRing.keys, let job = try core.revocations.find(id),
      let order = try keys.revocations.openJSON(job.sealed, Revocation.context)
    else { return }
    switch step {
    case .refresh: try finishRefresh(job, order, response, now)
    case .logout: try finishLogout(job, order, response, now)
    case .logoutOfOthers:
      // Any refusal is about the session of today, which may be refreshed or end before the next try.
      if response.status == 204 {
        try core.revocations.remove(job.id)
      } else {
        try postpone(job, response, now)
      }
    }
  }

  private func finishRefresh(
    _ job: RevocationTable.Job, _ order: JSON, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    switch AuthClassification.refresh(response.facts) {
    case .success:
      guard let reply = try response.tokens() else { return try postpone(job, response, now) }
      let renewed = order.shallowCopy
      renewed.set("access_token", reply.accessToken.json)
      renewed.set("refresh_token", reply.refreshToken.json)
      renewed.set("expires_ms", .int(try core.expiryMS(of: reply, now)))
      try update(job, renewed)
    case .terminal: try core.revocations.remove(job.id)
    case .transient: try postpone(job, response, now)
    }
  }

  private func finishLogout(
    _ job: RevocationTable.Job, _ order: JSON, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    switch AuthClassification.revoke(response.facts) {
    case .done:
      try core.revocations.remove(job.id)
    case .needsToken:
      let expired = order.shallowCopy
      expired.set("expires_ms", 0)
      try update(job, expired)
    case .transient: try postpone(job, response, now)
    }
  }

  private func update(_ job: RevocationTable.Job, _ order: JSON) throws(Failure) {
    try core.revocations.update(
      job.id, sealed: try core.keys().revocations.seal(order, Revocation.context))
  }

  private func postpone(
    _ job: RevocationTable.Job, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let delay = Backoff.delayMS(
      attempt: Int(job.attempts) + 1, random: Random.word(), floorMS: response.floorMS(for: .revoke)
    )
    try core.revocations.postpone(job.id, until: try core.steadyToStore(now) + delay)
  }
}
