public import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  private enum Scope: String, CaseIterable { case local, global }

  private static func revocationContext() -> SealContext {
    SealContext(table: "revocation", column: "sealed")
  }

  public func sessionLogout(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["scope", "discard", "confirm_unsent"])
    let scope = try fields.choice(ifPresent: "scope", Scope.self) ?? .local
    let discard = try fields.bool(ifPresent: "discard") ?? false
    let confirmed = try fields.integer(ifPresent: "confirm_unsent", in: 0...Fields.safe.upperBound)
    _ = try measure(.navigate)
    var unsent: Int64 = 0
    // The row of this transaction decides: another process may just have refreshed, signed somebody
    // else in or registered an item, and what is cleared must be what is revoked and confirmed.
    try main.transaction { () throws(Failure) in
      let row = try sessions.read()
      if let owner = row.owner { unsent = try queue.counts(of: owner).total }
      // Nobody there: a logout that failed behind its transaction is asked for again.
      if discard, row.owner != nil, confirmed != unsent {
        throw Failure(
          .sessionConfirmUnsent, "confirm_unsent must be the number of unsent items",
          field: "/confirm_unsent", detail: ["unsent": .int(unsent)])
      }
      if try synchronize(row) == .open, let open, let keys = ring.keys {
        try addRevocation(of: open, expiresMS: row.expiresMS, keys, global: scope == .global)
      }
      if discard, let owner = row.owner { try queue.removeAll(of: owner) }
      try signIns.removeAll()
      if row.owner != nil { try meta.set(.needsErase, .int(1)) }
      try clearSession(ended: nil)
    }
    try abandonReadBack()
    try eraseBiometricKey()
    try backoffs.clear(Service.auth.rawValue)
    let decision = try show(Decision(.signIn, .signedOut))
    return ["unsent": .int(unsent), "decision": decision]
  }

  /// A sealed order to end the session at the server, owned by nobody.
  func addRevocation(
    of open: OpenSession, expiresMS: Int64, _ keys: KeyRing.Keys, global: Bool = false
  ) throws(Failure) {
    try addRevocation(
      access: open.accessToken, refresh: open.refreshToken, expiresMS: expiresMS, keys,
      global: global)
  }

  func addRevocation(
    access: SecretBytes, refresh: SecretBytes, expiresMS: Int64, _ keys: KeyRing.Keys,
    global: Bool = false
  ) throws(Failure) {
    let order: JSON = [
      "refresh_token": refresh.json, "access_token": access.json,
      "expires_ms": .int(expiresMS), "global": .bool(global),
    ]
    _ = try revocations.add(
      sealed: try keys.revocations.seal(order, Engine.revocationContext()))
  }

  /// Ask the key store to erase the biometric key; what fails is tried again by later calls. The
  /// wraps are gone already, so a key that stays opens nothing.
  func eraseBiometricKey() throws(Failure) {
    var isErased = true
    do throws(KeyRefusal) { try ring.store.erase(.biometric) } catch { isErased = false }
    try meta.set(.needsErase, .int(isErased ? 0 : 1))
    if !isErased {
      Log.line(.warning, "the key store did not erase the biometric key; it will be asked again")
    }
  }

  // MARK: Revocation

  /// An access token that still verifies is needed to log out (GoTrue answers an expired one with 403
  /// `bad_jwt` and keeps the session), so refresh first when it has ended.
  func launchRevocation(
    _ job: RevocationTable.Job, _ now: Instant
  ) throws(Failure) -> JSON? {
    guard let keys = ring.keys,
      let order = try keys.revocations.openJSON(job.sealed, Engine.revocationContext()),
      let access = try order["access_token"].map({ (value) throws(Failure) in
        try SecretBytes.text(of: value)
      }) ?? nil,
      let refresh = try order["refresh_token"].map({ (value) throws(Failure) in
        try SecretBytes.text(of: value)
      }) ?? nil
    else {
      // Sealed with a key that is gone: nobody can ever carry it out.
      try revocations.remove(job.id)
      return nil
    }
    try revocations.lease(job.id, until: now.wallMS + 30_000)
    let ended = try serverMS(now) >= (order.int("expires_ms") ?? 0) - 5000
    let request =
      ended
      ? try AuthRequests.refresh(configuration.backend, token: refresh, purpose: .revoke)
      : try AuthRequests.logout(
        configuration.backend, bearer: access, global: order.bool("global") ?? false)
    return try fly(request, .revoke(job: job.id, refreshing: ended), 0, now)
  }

  func revoked(
    _ id: Int64, _ refreshing: Bool, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    guard let keys = ring.keys, let job = try revocations.find(id),
      let order = try keys.revocations.openJSON(job.sealed, Engine.revocationContext())
    else { return }
    if refreshing {
      switch AuthClassification.refresh(reply.facts) {
      case .success:
        guard let tokens = try readTokens(reply) else {
          return try postpone(job, reply, now)
        }
        let renewed = order.shallowCopy
        renewed.set("access_token", tokens.accessToken.json)
        renewed.set("refresh_token", tokens.refreshToken.json)
        renewed.set("expires_ms", .int(try expiry(of: tokens, now)))
        try revocations.update(
          id, sealed: try keys.revocations.seal(renewed, Engine.revocationContext()))
        try succeed(.auth)
      case .terminal, .alreadyUsed, .corrupt: try revocations.remove(id)
      case .transient, .unknownRejection: try postpone(job, reply, now)
      }
      return
    }
    switch AuthClassification.revoke(reply.facts) {
    case .done:
      try revocations.remove(id)
      try succeed(.auth)
    case .needsToken:
      let renewed = order.shallowCopy
      renewed.set("expires_ms", 0)
      try revocations.update(
        id, sealed: try keys.revocations.seal(renewed, Engine.revocationContext()))
    case .transient: try postpone(job, reply, now)
    }
  }

  private func postpone(
    _ job: RevocationTable.Job, _ reply: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let delay = Backoff.delayMS(
      attempt: Int(job.attempts) + 1, random: Random.word(), floorMS: reply.retryAfterMS ?? 0)
    try revocations.postpone(job.id, until: now.wallMS + delay)
  }
}
