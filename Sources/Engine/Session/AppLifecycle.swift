import Base
import Policy
import Store
import Supabase
import Vault

/// Start, return, background, network, lock, unlock and log-out, and the status of the session.
struct AppLifecycle: Rules {
  let parts: Parts

  /// The app has started. For a user who is in, it is back on the screen: a call that is made twice undoes
  /// nothing.
  func resume(_ request: JSON) throws(Failure) -> JSON {
    guard hostView.visit != .inside else { return try foreground(request) }
    _ = try Fields(request, known: [])
    try arrive(.resume)
    try decider.endAbsence()
    return [:]
  }

  func foreground(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    try arrive(.foreground)
    let wasOpen = sessions.session != nil
    // Without a biometric key, a lock that is due leaves the session open; the time away goes on.
    try decider.endAbsence()
    // Another handle may have locked meanwhile.
    if wasOpen, sessions.session == nil { try decider.receive(.foreground) }
    return [:]
  }

  /// Decide at once from what is stored; the server confirms it afterwards.
  private func arrive(_ occasion: Situation.Occasion) throws(Failure) {
    sessions.keys.askAgain()
    try decider.receive(occasion)
    if sessions.session != nil {
      requireConfirmation()
      // The decision has been made. If it is to wait, it told when that ends.
      check.askSilently(check.isConfirmed ? .keepingAnswer : .discardingAnswer, core.clock.now())
    }
  }

  /// Validate the session, check the memberships and pull the cache when next possible.
  private func confirmWithServer() {
    requireConfirmation()
    check.ask(.discardingAnswer, core.clock.now())
  }

  private func requireConfirmation() {
    keyless.carryOver()
    tokens.requireValidation()
    pulls.requirePull()
  }

  /// The host says whether there is a network. Another network may not have what failed in the last
  /// one, so only the pauses that the server asked for go on.
  func setNetwork(_ request: JSON) throws(Failure) -> JSON {
    let fields = try Fields(request, known: ["online"])
    let cameOnline = reachability.setOnline(try fields.bool("online"))
    if !reachability.isOnline { live.end(.offline) { !$0.isSent } }
    if cameOnline { try pauses.endUnasked { _ in true } }
    if cameOnline, core.keyRing.keys != nil, sessions.session != nil {
      confirmWithServer()
    }
    try decider.followChange()
    try signIn.followNetwork()
    return [:]
  }

  func background(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let now = core.clock.now()
    let isIn = hostView.visit == .inside
    // An app that has left before is not back because it says so again.
    let begins = isIn && hostView.isOnScreen
    hostView.isOnScreen = false
    do throws(Failure) {
      // One commit, with the erasure before it: a handle that sees it finds no key.
      try core.database.transaction { () throws(Failure) in
        try sessions.patch { (row) throws(Failure) in
          let goesOn = !begins && row.backgroundWallMS != nil
          row.noteBackground(now, goesOn: goesOn)
          if !goesOn { row.seenWallMS = now.wallMS }
        }
        try lock.leave(isIn: isIn)
      }
    } catch {
      // The disk does not take the time. The key goes all the same.
      do throws(Failure) { try lock.leave(isIn: isIn) } catch {}
      throw error
    }
    // The time-out begins now, so this decision does not lock yet.
    try decider.decide(.navigate)
    return [:]
  }

  // MARK: Locking and unlocking

  func lock(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    // A lock that the policy asks for leaves a sign-in that is under way: its user proves who they are.
    pendingSignIn.end()
    try lock.lock(.user)
    try decider.decide(.navigate)
    return [:]
  }

  /// The user has answered the prompt: the key store has the answer.
  func unlock(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let before = try decider.assess(.unlock)
    guard SessionPolicy.decide(before.situation).screen == .unlock else {
      try decider.receive(.navigate)
      return [:]
    }
    let outcome = try lock.unlock(before.row)
    if outcome == .invalidated { try lock.lock(.lostKey(generation: before.row.generation)) }
    if outcome == .success { confirmWithServer() }
    var situation = try decider.assess(.unlock).situation
    situation.outcome = outcome
    // The policy judges a locked session. A damaged record does not open.
    let isIn = outcome == .success && situation.record == .open
    if isIn { situation.record = .sealed }
    hostView.arrive(isIn: isIn)
    try decider.present(situation)
    return [:]
  }

  // MARK: Status

  func status(_ request: JSON) throws(Failure) -> JSON {
    _ = try Fields(request, known: [])
    let assessment = try decider.assess(.navigate)
    let (situation, row) = (assessment.situation, assessment.row)
    let now = core.clock.now()
    let (isActive, sends) = (decider.canUse(situation), decider.canSend(situation))
    // While the key store gives no answer, the stored session is locked.
    let isSignedIn = situation.keys != .lost && row.owner != nil
    var owed: [JSON] = []
    if sends, let session = sessions.session, try refresh.isNeeded(session, row, now) {
      owed.append("refresh")
    }
    if sends, tokens.needsValidation { owed.append("validation") }
    if sends, check.isNeeded { owed.append("guard") }
    if try core.revocations.count() > 0 { owed.append("revoke") }
    if sessions.keys.erasures.isOwing { owed.append("erase") }
    return [
      "state": isSignedIn ? (isActive ? "active" : "locked") : "signed_out",
      "stale": .bool(reachability.isFailing),
      "user_id": JSON(isActive ? sessions.session?.userID.text : nil),
      "expires_ms": isSignedIn ? .int(row.expiresMS) : .null,
      "validated_ms": isSignedIn ? .int(row.validatedServerMS) : .null,
      "validated_age_ms": isSignedIn ? .int(max(0, row.validatedAgeMS(now))) : .null,
      "owed": .array(owed),
      "clock_offset_ms": .int(try core.meta.int(.clockOffset) ?? 0),
      "generation": .int(row.generation),
    ]
  }
}
