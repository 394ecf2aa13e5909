import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  static var refreshLease: String { "refresh" }
  /// A refresh's time-out and grace: until then its lease holds.
  private static var refreshLeaseMS: Int64 { 25_000 }

  func refreshMargin(_ open: OpenSession) -> Int64 {
    RefreshPolicy.marginMS(
      configuredMS: configuration.limits.refreshMarginMS, lifetimeMS: open.lifetimeMS)
  }

  func needsRefresh(
    _ open: OpenSession, _ row: SessionRow, _ now: Instant
  ) throws(Failure) -> Bool {
    if tokenRefused { return true }
    // An intent without a result: the answer was lost on its way to the disk. The server gives the
    // same successor to the same token again, so asking with it is safe and finds the truth.
    if row.intentMS != 0, !isFlying(.refresh) { return true }
    return try isExpired(row, now, margin: refreshMargin(open))
  }

  /// Whether nobody else is refreshing.
  func mayRefresh(_ now: Instant) throws(Failure) -> Bool {
    try refreshHolder(now) == nil
  }

  /// A living holder of the refresh lease other than this handle.
  private func refreshHolder(_ now: Instant) throws(Failure) -> [UInt8]? {
    guard
      let other = try leases.holder(
        Engine.refreshLease, notBy: holder.bytes, now: now.wallMS)
    else { return nil }
    return Holder.isAlive(other, bootID: now.bootID) ? other : nil
  }

  /// Take the lease and write the intent in one step; false when another process was faster.
  func beginRefresh(_ open: OpenSession, _ now: Instant) throws(Failure) -> Bool {
    try main.transaction { () throws(Failure) in
      guard try refreshHolder(now) == nil else { return false }
      let row = try sessions.read()
      guard row.generation == open.generation else { return false }
      try leases.take(
        Engine.refreshLease, holder: holder.bytes, until: now.wallMS + Engine.refreshLeaseMS)
      row.intentMS = now.wallMS
      return try sessions.write(row, expecting: row.generation)
    }
  }

  /// The answer to a refresh. The new tokens are used only once they are stored.
  func refreshed(_ flight: Flight, _ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    let isCurrent = try sessions.read().generation == flight.generation
    if isCurrent {
      switch AuthClassification.refresh(reply.facts) {
      case .success:
        if let tokens = try readTokens(reply), tokens.userID == open?.userID {
          try store(tokens, flight.generation, now)
        } else {
          try staySigned(reply, now)
        }
      case .terminal(let reason): try endSession(reason.rawValue, flight.generation)
      // The row is the one that was sent from: no newer session was stored meanwhile.
      case .alreadyUsed: try endSession(EndReason.alreadyUsed.rawValue, flight.generation)
      case .corrupt: try endSession("session_corrupt", flight.generation)
      case .transient: try staySigned(reply, now)
      case .unknownRejection:
        try noteInSession(flight.generation) { (row) throws(Failure) in row.rejections += 1 }
        try staySigned(reply, now)
      }
    }
    try leases.release(Engine.refreshLease, holder: holder.bytes)
  }

  /// nil when they are not what a session is made of.
  func readTokens(_ reply: HTTPResponse) throws(Failure) -> TokenReply? {
    guard let body = reply.body else { return nil }
    do throws(Failure) { return try TokenReply.read(body) } catch
      where error.code == .sessionInvalid
    {
      return nil
    }
  }

  /// One transaction: tokens, generation + 1, intent cleared.
  private func store(
    _ reply: TokenReply, _ generation: Int64, _ now: Instant
  ) throws(Failure) {
    guard let open else { return }
    let sealed = try open.vault.seal(
      Tokens(reply).json, Engine.sessionContext("tokens", open.owner))
    let expires = try expiry(of: reply, now)
    let done = try swapSession(expecting: generation) { (row) throws(Failure) in
      row.tokens = sealed
      row.expiresMS = expires
      row.validatedMS = now.wallMS
      row.rejections = 0
      row.intentMS = 0
    }
    guard done else { return }
    tokenEnds = (expires, now.monotonicMS + reply.expiresInS * 1000, now.bootID)
    tokenRefused = false
    owesValidation = false
    stale = false
    if guarding.failed { askGuard(now, anew: true) }
    try succeed(.auth)
    _ = try synchronize(try sessions.read())
  }

  /// No proof of an end: keep the session, mark it stale, try again later.
  private func staySigned(_ reply: HTTPResponse, _ now: Instant) throws(Failure) {
    stale = true
    if guarding.wanted { guarding.failed = true }
    try backOff(.auth, reply, now)
  }

  /// The server has proved the end of the session of this generation: tokens and keys go, the queue
  /// stays. A session that came meanwhile is not touched.
  func endSession(_ reason: String, _ generation: Int64) throws(Failure) {
    let done = try main.transaction { () throws(Failure) in
      guard try sessions.read().generation == generation else { return false }
      try clearSession(ended: reason)
      try notify(["type": "session_ended", "reason": .string(reason)], owner: nil)
      return true
    }
    if done { try eraseBiometricKey() }
  }

  /// The answer to `GET /user`.
  func validated(_ reply: HTTPResponse, _ generation: Int64, _ now: Instant) throws(Failure) {
    switch AuthClassification.user(reply.facts) {
    case .valid:
      owesValidation = false
      stale = false
      try noteInSession(generation) { (row) throws(Failure) in
        row.validatedMS = now.wallMS
        row.rejections = 0
      }
      try succeed(.auth)
    case .terminal(let reason): try endSession(reason.rawValue, generation)
    case .badJWT: tokenRefused = true
    case .transient: try staySigned(reply, now)
    case .unknownRejection:
      try noteInSession(generation) { (row) throws(Failure) in row.rejections += 1 }
      try staySigned(reply, now)
    }
  }
}
