import Base
import Policy
import Store
import Supabase
import Vault

/// Decides what the host shows, and carries the decision out.
///
/// 1. `assess` reads the facts. 2. `SessionPolicy.decide` judges them. 3. `carryOut` does what the
/// decision asks for: clear, lock, choose. 4. `show` renders the decision, remembers it, and makes it
/// the next thing that the host gets. `followChange` does the same where the host shows something else.
struct Decider: Rules {
  let parts: Parts

  // MARK: Assessing

  /// Read everything that a decision depends on. At first use this loads or makes the device key,
  /// completes a recovery that waited for it, and opens the session.
  func assess(_ occasion: Situation.Occasion) throws(Failure) -> Assessment {
    var keys = try core.keyState()
    if keys == .ready { try recovery.completeIfNeeded() }
    let row = try sessions.row()
    var record = Situation.Record.missing
    if keys == .ready {
      record = try sessions.reload(row)
      keys = sessions.keyState
    }
    return try assessment(occasion, keys, record, row)
  }

  /// The same without changing anything; nil if only `assess` can tell, because a recovery waits or
  /// the session has changed.
  func assessUnchanged() throws(Failure) -> Assessment? {
    guard !awaitsKeys, !recovery.isNeeded else { return nil }
    let row = try sessions.row()
    guard let record = sessions.record(row) else { return nil }
    return try assessment(.navigate, .ready, record, row)
  }

  private func assessment(
    _ occasion: Situation.Occasion, _ keys: Situation.Keys, _ record: Situation.Record,
    _ row: SessionRow
  ) throws(Failure) -> Assessment {
    let now = core.clock.now()
    return Assessment(
      Facts(
        occasion: occasion, keys: keys, record: record, row: row, session: sessions.session,
        now: now, isOnlyHeld: sessions.keys.isOnlyHeld,
        tokenLifeLeftMS: try tokens.lifeLeftMS(row, now), isOnline: reachability.isOnline,
        freshness: check.freshness(now)),
      core.configuration)
  }

  /// Only the key store's answer can change the decision.
  var awaitsKeys: Bool { core.keyRing.keys == nil || sessions.keyState != .ready }

  // MARK: Access

  /// Whether data may be shown and changed: a user was let in, the session is open, and no lock is due.
  func canUse(_ situation: Situation) -> Bool { hostView.visit == .inside && canSend(situation) }

  /// Whether requests may be sent with the session: it is open, and no lock is due.
  func canSend(_ situation: Situation) -> Bool {
    guard situation.record == .open else { return false }
    let screen = SessionPolicy.decide(situation).screen
    return screen == .home || screen == .selectOrg || (screen == .wait && situation.keys == .ready)
  }

  /// The open session, or the failure that a data call answers with.
  func requireSession() throws(Failure) -> OpenSession { try requireUsable().session }

  func requireUsable() throws(Failure) -> (session: OpenSession, situation: Situation) {
    let (session, situation) = try requireSendable()
    guard canUse(situation) else {
      throw Failure(.sessionLocked, "nobody has come in: call holdfast_session_resume first")
    }
    return (session, situation)
  }

  /// The session that requests may be sent with.
  func requireSendable() throws(Failure) -> (OpenSession, Situation) {
    let situation = try assess(.navigate).situation
    try core.require(situation.keys)
    switch situation.record {
    case .missing, .ended, .corrupt: throw Failure(.sessionNone, "nobody is signed in")
    case .sealed: throw Failure(.sessionLocked, "the session is locked")
    case .open: break
    }
    guard canSend(situation), let session = sessions.session else {
      throw Failure(.sessionLocked, "the session is locked")
    }
    return (session, situation)
  }

  /// The open session and its chosen, usable organisation; nil in an app without organisations.
  func requirePlace() throws(Failure) -> (session: OpenSession, org: UUID?) {
    let (session, situation) = try requireUsable()
    let isChosen = session.choice != nil || !core.configuration.backend.hasOrganisations
    try (isChosen ? situation.membership : .unchosen).require()
    return (session, session.choice)
  }

  // MARK: Deciding

  func decide(_ occasion: Situation.Occasion) throws(Failure) {
    try present(try assess(whileOutside(occasion)).situation)
  }

  /// Use does not enforce the window. While nobody is in, a call is answered as a start would be, or as
  /// a return.
  ///
  /// After a start that was refused, a return is judged as that start again, because only a start locks on an expired
  /// token. (The session is still open in this process: no biometric key could have opened it again.)
  func whileOutside(_ occasion: Situation.Occasion) throws(Failure) -> Situation.Occasion {
    switch hostView.visit {
    case .nobody where occasion == .navigate: return .resume
    case .outside:
      guard occasion == .navigate || occasion == .foreground else { return occasion }
      return hostView.isRefused(try sessions.row()) ? .resume : .foreground
    default: return occasion
    }
  }

  /// Decide for a user who has just come. While a sign-in is under way they wait for it: the methods or the
  /// prompt would offer what they have just done.
  func receive(_ occasion: Situation.Occasion) throws(Failure) {
    let occasion = try whileOutside(occasion)
    let assessment = try assess(occasion)
    let situation = assessment.situation
    var decision = SessionPolicy.decide(situation)
    hostView.noteVisitor()
    try carryOut(decision)
    hostView.note(decision, on: occasion, assessment.row)
    if let pending = pendingSignIn.pending, decision.screen == .signIn || decision.screen == .unlock
    {
      decision = Decision(.wait, .signingIn, cause: pending.cause)
    }
    try show(decision)
    hostView.arrive(isIn: canSend(situation))
  }

  /// Judge a situation, carry out what the decision asks for, and show it.
  func present(_ situation: Situation) throws(Failure) {
    let decision = SessionPolicy.decide(situation)
    try carryOut(decision)
    try show(decision)
  }

  /// The same for a call that asks: it gets the screen. Somebody who is there is shown it, too, if it is
  /// another one.
  func answer(_ situation: Situation) throws(Failure) -> JSON {
    let decision = SessionPolicy.decide(situation)
    try carryOut(decision)
    let rendered = try presenter.render(decision)
    let isOther = HostView.fingerprint(of: rendered) != hostView.shown.fingerprint
    // A wait that was told must end, whatever was shown before.
    let isOtherWait = decision.screen == .wait && decision.message != hostView.shown.message
    if isOtherWait || hostView.visit != .nobody && isOther { try show(decision, rendered) }
    return rendered
  }

  /// Show a decision, also if it looks like the last one.
  func show(_ decision: Decision) throws(Failure) {
    try show(decision, try presenter.render(decision))
  }

  private func show(_ decision: Decision, _ rendered: JSON) throws(Failure) {
    try JSON.checkMemory()
    hostView.remember(
      decision, rendered, over: try sessions.row(), checkSinceMS: check.sinceMS)
    news.show(rendered, core.clock.now())
  }

  private func carryOut(_ decision: Decision) throws(Failure) {
    let generation = sessions.judgedGeneration
    if decision.forget { try sessions.end(.unreadable(generation: generation)) }
    // Before the host has said that somebody came, a question must not lock.
    if decision.lock, hostView.visit != .nobody { try lock.lock(.policy(generation: generation)) }
    // A reset may have cleared the check, or its answer has become too old; ask again so that the wait
    // ends.
    if decision.message == .guardPending, !check.isPending {
      check.ask(.discardingAnswer, core.clock.now())
    }
    if decision.chooseOnly, let session = sessions.session,
      let only = session.memberships?.first(where: { $0.isUsable })
    {
      _ = try sessions.choose(only.orgID, session)
    }
  }

  /// Whoever is in is back: the time in the background is over, and locks nobody out later.
  func endAbsence() throws(Failure) {
    guard hostView.visit == .inside, sessions.session != nil else { return }
    if try sessions.row().backgroundWallMS != nil {
      try sessions.patch { (row) throws(Failure) in row.forgetBackground() }
    }
    lock.comeBack()
  }

  // MARK: Changes

  /// Whether a `wait` that the host shows ends with this decision. A shown `wait` is replaced only by
  /// a first `server_unreachable`, by another refusal of the key store, and by the wait for a membership
  /// check that began later, which has a later deadline.
  private func endsWait(_ decision: Decision) -> Bool {
    if decision.screen != .wait { return true }
    switch decision.message {
    case .serverUnreachable, .keystoreLocked, .keystoreFailed:
      return hostView.shown.message != decision.message
    case .guardPending:
      return hostView.shown.message == decision.message
        && hostView.shown.checkSinceMS < check.sinceMS
    default: return false
    }
  }

  /// Whether the host shows the wait for a pending sign-in. If it has shown another decision since,
  /// changes are shown as usual.
  private var awaitsSignIn: Bool {
    pendingSignIn.pending != nil && hostView.shown.message == .signingIn
  }

  /// Whether the host goes on showing the sign-in, though the session is open: a start was refused, or a
  /// sign-in over the session failed, which the user must be able to read. That stays until somebody signs
  /// in, unlocks or logs out, or the app asks for a decision. A refresh of the tokens is no such change.
  private func keepsSignIn(_ shown: Shown, _ situation: Situation, _ row: SessionRow) -> Bool {
    guard canSend(situation) else { return false }
    if !shown.isWaiting, hostView.isRefused(row) { return true }
    return shown.screen == .signIn && shown.message?.endsSignIn ?? false
      && shown.authenticatedMS == row.authenticatedMS
  }

  /// Whether the check's deadline has passed and no decision followed yet.
  func hasUntoldDecision(_ now: Instant) throws(Failure) -> Bool {
    guard hostView.shown.isWaiting, !awaitsSignIn, check.freshness(now) == .unreachable else {
      return false
    }
    // Without keys, only the key store ends the wait; `Scheduler` asks it again.
    guard !awaitsKeys else { return false }
    guard let assessment = try assessUnchanged() else { return true }
    return endsWait(SessionPolicy.decide(assessment.situation))
  }

  /// Show another screen if the host should show something else. Before anybody has come, only
  /// a `wait` is followed by one, and it lets nobody in.
  func followChange() throws(Failure) {
    let isExpected = hostView.visit != .nobody || hostView.shown.isWaiting
    guard !hostView.shown.fingerprint.isEmpty, isExpected, !awaitsSignIn else { return }
    // While the user is outside, this is their arrival: the start goes on that the key store made wait,
    // or another process may have unlocked the session.
    let arrival: Situation.Occasion = hostView.shown.isWaiting ? .resume : .foreground
    let assessment = try assess(hostView.visit == .inside ? .navigate : arrival)
    // A waiting host gets a decision after the check. A host that shows a screen keeps it
    // meanwhile.
    let situation = hostView.shown.isWaiting ? assessment.situation : assessment.asReturn
    var decision = SessionPolicy.decide(situation)
    if hostView.shown.isWaiting, !endsWait(decision) {
      if decision.message != .guardPending || check.isPending { return }
      // No check is requested; request one, then decide again.
      check.askSilently(.discardingAnswer, core.clock.now())
      return try followChange()
    }
    let before = hostView.shown
    // The sign-in that the user was led to from the lock stays until the session changes, unless a
    // decision is owed: its sign-in has ended. A lost device key that is back is such a change, also if
    // somebody has tried to sign in meanwhile.
    if !core.keyRing.endProvisional() {
      if !before.isWaiting, before.screen == .signIn, decision.screen == .unlock, !decision.lock,
        before.message != .keyLost, before.generation == assessment.row.generation
      {
        return
      }
      if keepsSignIn(before, situation, assessment.row) { return }
    }
    // A sign-in keeps its reason until the session changes; only its banners may differ.
    if before.screen == .signIn, decision == Decision(.signIn, .sessionMissing),
      before.generation == assessment.row.generation, let told = before.decision
    {
      decision = Decision(
        .signIn, told.message, cause: told.cause, canUnlock: told.canUnlock)
    }
    try carryOut(decision)
    hostView.note(decision, on: situation.occasion, assessment.row)
    // (An app that is in the background may call, too: for it the time goes on.)
    if hostView.visit == .outside, hostView.isOnScreen, canSend(situation) {
      hostView.arrive(isIn: true)
      try endAbsence()
    }
    let rendered = try presenter.render(decision)
    guard before.isWaiting || HostView.fingerprint(of: rendered) != before.fingerprint else {
      return
    }
    try show(decision, rendered)
  }
}
