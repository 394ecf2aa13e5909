import Base
import Policy
import Store
import Supabase
import Vault

/// Stores a session that the server has just issued. No other part creates one.
///
/// `SessionKeys` describes the order of the steps. All of them are taken under the file's write lock, so
/// a late response cannot replace the keys of a newer session.
struct SessionStart: Rules {
  /// A session that was stored.
  private struct Stored {
    let keys: SessionKeys.Fresh
    /// The same user signed in over an open session: choice, memberships and cache stay.
    let isOfSameUser: Bool
  }

  let parts: Parts

  /// Store the session over the one of `generation`. Returns false when that one is gone.
  func adopt(_ reply: TokenReply, ifGeneration expected: Int64) throws(Failure) -> Bool {
    let now = core.clock.now()
    var generation = expected
    let state = try core.keyState()
    if state != .lost {
      try core.require(state)
    } else {
      guard try sessions.row().generation == expected else { return false }
      try recovery.beginAnew()
      let fresh = try sessions.row()
      // Another process has stored one in the new file.
      guard fresh.owner == nil else { return false }
      generation = fresh.generation
    }
    let expiresMS = try core.expiryMS(of: reply, now)
    let stored: Stored?
    do throws(Failure) {
      stored = try core.database.transaction { () throws(Failure) -> Stored? in
        guard try sessions.row().generation == generation else { return nil }
        return try store(reply, over: generation, expiresMS, now)
      }
    } catch {
      do throws(Failure) { try sessions.keepUsable() } catch {}
      throw error
    }
    // Change memory and the cache only after the commit, so a failed commit changes nothing. After
    // a crash in between, the old rows of the cache stay, but the key that opens them is gone.
    guard let stored else { return false }
    sessions.keys.hold(stored.keys)
    if !stored.isOfSameUser { cache.erase() }
    tokens.replace(expiresMS: expiresMS, lifetimeMS: reply.expiresInS * 1000, now)
    pendingSignIn.end()
    hostView.arrive(isIn: true)
    do throws(Failure) { try enrol(stored.keys) } catch { sessions.keys.erasures.lookForOwed() }
    do throws(Failure) {
      let row = try sessions.row()
      // Its user has left before the answer was there.
      if row.backgroundWallMS != nil, try sessions.reload(row) == .open {
        try lock.leave(isIn: true)
      }
    } catch {}
    reachability.noteSuccess()
    pulls.requirePull()
    check.ask(.discardingAnswer, now)
    return true
  }

  /// Let biometrics open the session that was just stored, unless another handle has replaced or locked it meanwhile.
  private func enrol(_ fresh: SessionKeys.Fresh) throws(Failure) {
    guard core.configuration.limits.biometric != .off else { return }
    try sessions.patch { (row) throws(Failure) in
      guard row.wrapSession == fresh.wrapSession else { return }
      row.wrapBiometric = try sessions.keys.enrol(fresh)
    }
  }

  /// Take a session that the host passes.
  func adopt(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["session"])
    let reply = try TokenReply.read(try fields.required("session"), at: "/session")
    guard try adopt(reply, ifGeneration: try sessions.row().generation) else {
      throw Failure(.storageBusy, "another process changed the session meanwhile")
    }
    try decider.decide(.navigate)
    return [:]
  }

  private func store(
    _ reply: TokenReply, over generation: Int64, _ expiresMS: Int64, _ now: Instant
  ) throws(Failure) -> Stored? {
    let keys = try core.keys()
    let owner = keys.userTag(reply.userID)
    let before = try sessions.row()
    _ = try sessions.reload(before)
    // Without the key of the session from before, a failure on the way could not wrap it again.
    // A key that counts as lost is given up by the user who signs in.
    if sessions.keyState != .lost { try core.require(sessions.keyState) }
    let kept = sessions.session.flatMap { $0.owner == owner ? $0 : nil }
    let fresh = try sessions.keys.replace(owner, over: before)
    if let replaced = sessions.session, kept == nil {
      try revocations.add(replaced, expiresMS: before.expiresMS)
    }
    let serverMS = try serverMS(reply, expiresMS: expiresMS, now)
    let isStored = try sessions.update(ifGeneration: generation) { (row) throws(Failure) in
      row.owner = owner
      row.ended = nil
      row.wrapSession = fresh.wrapSession
      row.wrapBiometric = nil
      if let kept {
        try sessions.keys.reseal(row, from: kept.vault, to: fresh.vault)
      } else {
        row.choice = nil
        row.memberships = nil
        row.membershipsMS = 0
        row.cacheKey = try sessions.keys.newCacheKey(under: fresh.vault, owner)
      }
      row.tokens = try fresh.vault.seal(
        Tokens(reply).json, SessionKeys.context("tokens", owner))
      row.noteAuthentication(now, isOnScreen: hostView.isOnScreen)
      row.noteValidation(now, serverMS: serverMS)
      row.expiresMS = expiresMS
      row.locked = false
      row.intentMS = 0
    }
    guard isStored else { return nil }
    // The sign-ins that are open elsewhere are not needed: a late callback must not disturb this one.
    try core.signIns.removeAll()
    try pauses.clearAuth()
    return Stored(keys: fresh, isOfSameUser: kept != nil)
  }

  /// The server's time. The access token was issued its life time before its end, so it is not earlier
  /// than that. Before the first response nothing else is known, and what is known is too early when
  /// the device's clock was moved back since.
  private func serverMS(
    _ reply: TokenReply, expiresMS: Int64, _ now: Instant
  ) throws(Failure) -> Int64 {
    let issuedMS = expiresMS - reply.expiresInS * 1000
    guard try core.meta.int(.clockOffset) != nil else { return issuedMS }
    return max(issuedMS, try core.serverMS(now))
  }
}

extension Core {
  /// When the access token ends, in server time.
  func expiryMS(of reply: TokenReply, _ now: Instant) throws(Failure) -> Int64 {
    if let end = reply.expiresAtS { return end * 1000 }
    return try serverMS(now) + reply.expiresInS * 1000
  }
}
