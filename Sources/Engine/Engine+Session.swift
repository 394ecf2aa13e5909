public import Base
import Policy
import Store
import Supabase
import Vault

extension Engine {
  // MARK: The row and its mirror

  /// The contexts in which the session row's values are sealed.
  static func sessionContext(_ column: StaticCString, _ owner: [UInt8]) -> SealContext {
    SealContext(table: "session", owner: owner, column: column)
  }

  /// Change the row and its generation in one step.
  ///
  /// Nothing is changed, and false returned, when the generation is no longer `expected`: a late
  /// answer must neither revive nor touch a session that came after it.
  func swapSession(
    expecting expected: Int64, _ edit: (SessionRow) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    try main.transaction { () throws(Failure) in
      let row = try sessions.read()
      guard row.generation == expected else { return false }
      row.generation += 1
      row.seenWallMS = clock.now().wallMS
      try edit(row)
      return try sessions.write(row, expecting: expected)
    }
  }

  /// Change what does not identify the session, such as times; the generation stays. With
  /// `expected`, only if it is still that one.
  func noteInSession(
    _ expected: Int64? = nil, _ edit: (SessionRow) throws(Failure) -> Void
  ) throws(Failure) {
    try main.transaction { () throws(Failure) in
      let row = try sessions.read()
      if let expected, row.generation != expected { return }
      try edit(row)
      _ = try sessions.write(row, expecting: row.generation)
    }
  }

  /// Read the row, bring the mirror up to date, and say what the record is.
  func synchronize(_ row: SessionRow) throws(Failure) -> Situation.Record {
    if let open, open.generation == row.generation { return .open }
    if let open, open.owner != row.owner {
      // Another process has changed the user: what was confirmed and fetched was the other one's. (But
      // a host that waits was told until when.)
      events.withdraw("contact")
      guarding = GuardState(sinceMS: guarding.sinceMS)
    }
    open = nil
    contactIndex = nil
    // What the server refused was the token before.
    tokenRefused = false
    guard let owner = row.owner else { return row.ended == nil ? .missing : .ended }
    guard let keys = ring.keys else { return .sealed }
    guard let wrap = row.wrapDevice else { return .sealed }
    guard let vault = try keys.device.unwrap(wrap, Engine.sessionContext("wrap_device", owner)),
      let session = try readSession(row, owner, vault, keys)
    else { return .corrupt }
    open = session
    return .open
  }

  /// nil when a part does not open.
  private func readSession(
    _ row: SessionRow, _ owner: [UInt8], _ vault: Key, _ keys: KeyRing.Keys
  ) throws(Failure) -> OpenSession? {
    guard let sealed = row.tokens,
      let json = try vault.openJSON(sealed, Engine.sessionContext("tokens", owner)),
      let tokens = try Tokens(json)
    else { return nil }
    var choice: UUID?
    if let sealed = row.choice {
      guard let json = try vault.openJSON(sealed, Engine.sessionContext("choice", owner)),
        let id = json.uuid("org_id")
      else { return nil }
      choice = id
    }
    var memberships: [Membership]?
    if let sealed = row.memberships {
      guard let json = try vault.openJSON(sealed, Engine.sessionContext("memberships", owner)),
        let list = json["memberships"]
      else { return nil }
      var read: [Membership] = []
      for element in list.elements {
        guard let membership = Membership(sealed: element) else { return nil }
        read.append(membership)
      }
      memberships = read
    }
    return OpenSession(
      generation: row.generation, owner: owner, tokens: tokens, vault: vault,
      queueKey: try keys.queues.derived(for: owner), choice: choice, memberships: memberships)
  }

  // MARK: Starting

  /// Store a session that the server has just given: the only way in.
  ///
  /// The biometric key is made first. Should the process die before the commit, the session before
  /// this one can no longer be unlocked and asks for a sign-in; the other order could store a session
  /// whose wrap nothing opens. Both happen under the file's write lock: an answer that comes too late
  /// must not replace the key of the session that came meanwhile.
  func adopt(_ reply: TokenReply, expecting generation: Int64) throws(Failure) -> Bool {
    let now = clock.now()
    let expires = try expiry(of: reply, now)
    let stored = try main.transaction { () throws(Failure) -> Adoption in
      guard try sessions.read().generation == generation else { return .late }
      return try store(reply, over: generation, expires, now)
    }
    // Memory follows the disk: a commit that fails has changed neither.
    guard stored != .late else { return false }
    if stored == .anew { eraseCache() }
    tokenEnds = (expires, now.monotonicMS + reply.expiresInS * 1000, now.bootID)
    tokenRefused = false
    exchange = nil
    owesValidation = false
    stale = false
    owesPull = true
    askGuard(now, anew: true)
    return true
  }

  private enum Adoption {
    /// A newer session is there.
    case late
    case anew
    /// The same user signed in over his open session: what is cached for him stays readable.
    case sameUser
  }

  private func store(
    _ reply: TokenReply, over generation: Int64, _ expires: Int64, _ now: Instant
  ) throws(Failure) -> Adoption {
    let keys = try keys()
    let owner = userTag(reply.userID, keys)
    let before = try sessions.read()
    _ = try synchronize(before)
    let kept = open.flatMap { $0.owner == owner ? $0 : nil }
    let vault: Key
    if let kept { vault = kept.vault } else { vault = try Key.random() }
    let biometric = try makeBiometricKey()
    let tokens = Tokens(reply)
    let sealedTokens = try vault.seal(tokens.json, Engine.sessionContext("tokens", owner))
    let wrapDevice = try keys.device.wrap(vault, Engine.sessionContext("wrap_device", owner))
    let wrapBiometric = try biometric.map { (key) throws(Failure) in
      try key.wrap(vault, Engine.sessionContext("wrap_biometric", owner))
    }
    if let open, kept == nil { try addRevocation(of: open, expiresMS: before.expiresMS, keys) }
    let done = try swapSession(expecting: generation) { (row) throws(Failure) in
      row.owner = owner
      row.ended = nil
      row.wrapDevice = wrapDevice
      row.wrapBiometric = wrapBiometric
      row.tokens = sealedTokens
      if kept == nil {
        row.choice = nil
        row.memberships = nil
        row.membershipsMS = 0
      }
      row.authenticatedMS = now.wallMS
      row.validatedMS = now.wallMS
      row.expiresMS = expires
      row.locked = false
      row.rejections = 0
      row.intentMS = 0
      row.forgetBackground()
    }
    guard done else { return .late }
    try meta.set(.needsErase, .int(0))
    try backoffs.clear(Service.auth.rawValue)
    return kept == nil ? .anew : .sameUser
  }

  /// When the access token ends, in server time.
  func expiry(of reply: TokenReply, _ now: Instant) throws(Failure) -> Int64 {
    if let end = reply.expiresAtS { return end * 1000 }
    return try serverMS(now) + reply.expiresInS * 1000
  }

  /// A fresh key behind the user's presence; nil where there are no biometrics to be had.
  private func makeBiometricKey() throws(Failure) -> Key? {
    guard configuration.limits.biometric != .off else { return nil }
    let key = try Key.random()
    let refusal: KeyRefusal
    do throws(KeyRefusal) {
      try ring.store.save(key, .biometric)
      return key
    } catch {
      refusal = error
    }
    switch refusal {
    case .notEnrolled, .unavailable: return nil
    case .locked: throw Failure(.keyStoreLocked, "the device was not unlocked yet")
    default: throw Failure(.keyStoreFailed, "the key store did not take the biometric key")
    }
  }

  public func sessionStart(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["session"])
    let reply = try TokenReply.read(try fields.required("session"), at: "/session")
    guard try adopt(reply, expecting: try sessions.read().generation) else {
      throw Failure(.storageBusy, "another process changed the session meanwhile")
    }
    return try decide(.navigate)
  }

  // MARK: Resuming

  public func sessionResume(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    return try arrive(.resume)
  }

  public func sessionForeground(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let reply = try arrive(.foreground)
    if open != nil {
      try noteInSession { (row) throws(Failure) in
        row.forgetBackground()
      }
    }
    return reply
  }

  /// A user looks at the app: decide, and let the server confirm it afterwards.
  private func arrive(_ occasion: Situation.Occasion) throws(Failure) -> JSON {
    let reply = try decide(occasion)
    if open != nil {
      owesValidation = true
      owesPull = true
      askGuard(clock.now(), anew: !guarding.confirmed)
    }
    return reply
  }

  public func sessionBackground(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let now = clock.now()
    try noteInSession { (row) throws(Failure) in
      row.backgroundWallMS = now.wallMS
      row.backgroundMonotonicMS = now.monotonicMS
      row.backgroundBoot = now.bootID
      row.seenWallMS = now.wallMS
    }
    // Counting starts now: nothing is locked by the next call already.
    return try decide(.navigate)
  }

  // MARK: Locking and unlocking

  public func sessionLock(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    try lock(byUser: true)
    return try decide(.navigate)
  }

  /// Erase the device wrap where the biometric key can bring it back; else lock by policy. A refresh
  /// that another process stores meanwhile must not keep the session open: whatever is stored, is
  /// locked.
  func lock(byUser: Bool) throws(Failure) {
    try main.transaction { () throws(Failure) in
      let row = try sessions.read()
      guard row.owner != nil else { return }
      let cryptographic = row.wrapBiometric != nil && configuration.limits.biometric != .off
      _ = try swapSession(expecting: row.generation) { (row) throws(Failure) in
        if cryptographic { row.wrapDevice = nil }
        if byUser || !cryptographic { row.locked = true }
      }
    }
    forgetSession()
  }

  /// Drop everything of the session from memory.
  func forgetSession() {
    open = nil
    contactIndex = nil
    exchange = nil
    tokenEnds = nil
    liveRequests = []
    events.withdraw("contact")
    guarding = GuardState(sinceMS: guarding.sinceMS)
  }

  private enum Outcome: String, CaseIterable {
    case success, failed, cancelled, lockout
    case lockoutPermanent = "lockout_permanent"
    case notEnrolled = "not_enrolled"
    case invalidated, unavailable

    var judged: Situation.Outcome {
      switch self {
      case .success: return .success
      case .failed: return .failed
      case .cancelled: return .cancelled
      case .lockout: return .lockout
      case .lockoutPermanent: return .lockoutPermanent
      case .notEnrolled: return .notEnrolled
      case .invalidated: return .invalidated
      case .unavailable: return .unavailable
      }
    }
  }

  public func sessionUnlock(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["outcome"])
    let outcome = try fields.choice("outcome", Outcome.self)
    let measured = try measure(.unlock)
    let row = measured.row
    var situation = measured.situation
    guard SessionPolicy.decide(situation).screen == .unlock else { return try decide(.navigate) }
    situation.outcome =
      outcome == .success ? try openWithBiometrics(row, situation) : outcome.judged
    if situation.outcome == .invalidated { try dropBiometricWrap(row) }
    guard situation.outcome == .success else { return try present(situation) }
    let now = clock.now()
    owesValidation = true
    owesPull = true
    askGuard(now, anew: true)
    var unlocked = try measure(.unlock).situation
    unlocked.record = .sealed
    unlocked.outcome = .success
    return try present(unlocked)
  }

  /// The biometric key is gone for good, and with it all that only it could open: the next start goes
  /// straight to the sign-in. The queue has a key of its own.
  private func dropBiometricWrap(_ row: SessionRow) throws(Failure) {
    _ = try swapSession(expecting: row.generation) { (row) throws(Failure) in
      row.wrapDevice = nil
      row.wrapBiometric = nil
    }
    forgetSession()
  }

  /// Ask the key store for the biometric key and, with it, put the device wrap back.
  private func openWithBiometrics(
    _ row: SessionRow, _ situation: Situation
  ) throws(Failure) -> Situation.Outcome {
    guard let owner = row.owner, let wrap = row.wrapBiometric else { return .invalidated }
    let keys = try keys()
    let biometric: Key
    do throws(KeyRefusal) { biometric = try ring.store.load(.biometric) } catch {
      switch error {
      case .notFound, .invalidated: return .invalidated
      case .lockout: return .lockout
      case .lockoutPermanent: return .lockoutPermanent
      case .notEnrolled: return .notEnrolled
      case .unavailable: return .unavailable
      // The prompt is said to have succeeded, and the key does not come: nothing is opened.
      case .locked, .cancelled, .failed: return .withheld
      }
    }
    guard let vault = try biometric.unwrap(wrap, Engine.sessionContext("wrap_biometric", owner))
    else { return .withheld }
    let wrapped = try keys.device.wrap(vault, Engine.sessionContext("wrap_device", owner))
    let now = clock.now()
    let done = try swapSession(expecting: row.generation) { (row) throws(Failure) in
      row.wrapDevice = wrapped
      row.locked = false
      row.authenticatedMS = now.wallMS
      row.forgetBackground()
    }
    return done ? .success : .withheld
  }

  // MARK: Status

  public func sessionStatus(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let measured = try measure(.navigate)
    let (situation, row) = (measured.situation, measured.row)
    let now = clock.now()
    let active = canUse(situation)
    let signedIn = situation.keys == .ready && row.owner != nil
    var owed: [JSON] = []
    if active, let open, try needsRefresh(open, row, now) { owed.append("refresh") }
    if active, owesValidation { owed.append("validation") }
    if active, guarding.wanted { owed.append("guard") }
    if try revocations.count() > 0 { owed.append("revoke") }
    return [
      "state": signedIn ? (active ? "active" : "locked") : "signed_out",
      "stale": .bool(stale),
      "user_id": JSON(active ? open?.userID.text : nil),
      "expires_ms": signedIn ? .int(row.expiresMS) : .null,
      "validated_ms": signedIn ? .int(row.validatedMS) : .null,
      "validated_age_ms": signedIn ? .int(max(0, now.wallMS - row.validatedMS)) : .null,
      "owed": .array(owed),
      "clock_offset_ms": .int(try meta.int(.clockOffset) ?? 0),
      "generation": .int(row.generation),
    ]
  }
}
