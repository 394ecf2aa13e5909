import Base
import Policy
import Store
import Supabase
import Vault

/// Decides what the host shows, and carries out what the decision asks for.
///
/// 1. `assess` reads the facts. 2. `SessionPolicy.decide` judges them. 3. `carryOut` does what the
/// decision asks for: set files aside, clear, lock, choose. 4. `show` renders the decision and
/// remembers it. `emitIfChanged` does the same after everything that may change a decision, and emits
/// an event when the host shows something else.
final class Decider {
  private let core: Core
  private let sessions: SessionStore
  private let lock: Lock
  private let check: MembershipCheck
  private let tokens: TokenState
  private let pendingSignIn: PendingSignInState
  private let reachability: Reachability
  private let events: EventQueue
  private let hostView: HostView
  private let presenter: Presenter
  private let orgSelection: OrgSelection
  private let recovery: Recovery

  init(
    _ core: Core, _ sessions: SessionStore, lock: Lock, check: MembershipCheck,
    tokens: TokenState, pendingSignIn: PendingSignInState, reachability: Reachability,
    events: EventQueue, hostView: HostView, presenter: Presenter, orgSelection: OrgSelection,
    recovery: Recovery
  ) {
    self.core = core
    self.sessions = sessions
    self.lock = lock
    self.check = check
    self.tokens = tokens
    self.pendingSignIn = pendingSignIn
    self.reachability = reachability
    self.events = events
    self.hostView = hostView
    self.presenter = presenter
    self.orgSelection = orgSelection
    self.recovery = recovery
  }

  // MARK: Assessing

  /// Read everything that a decision depends on. At first use this loads or makes the device key,
  /// completes a recovery that waited for it, and opens the session.
  func assess(_ occasion: Situation.Occasion) throws(Failure) -> Assessment {
    let keys = try core.keyRing.state(for: core.database)
    if keys == .ready { try recovery.completeIfNeeded() }
    let row = try sessions.row()
    let record = keys == .ready ? try sessions.reload(row) : .missing
    return try assessment(occasion, keys, record, row)
  }

  /// The same from what is in memory, changing nothing; nil when only `assess` can tell, because a
  /// recovery waits or another process changed the session.
  func assessUnchanged() throws(Failure) -> Assessment? {
    guard core.keyRing.keys != nil, !recovery.isNeeded else { return nil }
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
        now: now, tokenLifeLeftMS: try tokens.lifeLeftMS(row, now),
        isOnline: reachability.isOnline, freshness: check.freshness(now)),
      core.configuration)
  }

  // MARK: Access

  /// Whether data may be shown and changed: the session is open and no lock is due.
  func canUse(_ situation: Situation) -> Bool {
    guard situation.record == .open else { return false }
    let screen = SessionPolicy.decide(situation).screen
    return screen == .home || screen == .selectOrg || (screen == .wait && situation.keys == .ready)
  }

  /// The open session, or the failure that a data call answers with.
  func requireSession() throws(Failure) -> OpenSession {
    let situation = try assess(.navigate).situation
    _ = try core.keys()
    switch situation.record {
    case .missing, .ended, .corrupt: throw Failure(.sessionNone, "nobody is signed in")
    case .sealed: throw Failure(.sessionLocked, "the session is locked")
    case .open: break
    }
    guard canUse(situation), let session = sessions.session else {
      throw Failure(.sessionLocked, "the session is locked")
    }
    return session
  }

  /// The open session and its chosen, usable organisation.
  func requireOrganisation() throws(Failure) -> (session: OpenSession, org: Membership) {
    let session = try requireSession()
    guard session.choice != nil else {
      throw Failure(.orgNone, "no organisation is chosen")
    }
    guard let chosen = session.chosen, chosen.active else {
      throw Failure(.orgRevoked, "the membership has ended")
    }
    guard chosen.orgActive else { throw Failure(.orgDisabled, "the organisation is disabled") }
    return (session, chosen)
  }

  // MARK: Deciding

  func decide(_ occasion: Situation.Occasion) throws(Failure) -> JSON {
    try present(try assess(occasion).situation)
  }

  /// Judge a situation, carry out what the decision asks for, and show it.
  func present(_ situation: Situation) throws(Failure) -> JSON {
    let decision = SessionPolicy.decide(situation)
    try carryOut(decision)
    return try show(decision)
  }

  /// Render a decision, and remember it as what the host shows.
  func show(_ decision: Decision) throws(Failure) -> JSON {
    let rendered = try presenter.render(decision)
    hostView.remember(rendered, decision.screen, decision.reason)
    // An undelivered decision is older: it must not follow this one.
    events.discard("decision")
    return rendered
  }

  private func carryOut(_ decision: Decision) throws(Failure) {
    if decision.quarantine { try recovery.quarantine() }
    if decision.forget { try sessions.clear(ended: nil) }
    if decision.lock { try lock.lock(byUser: false) }
    // Another user's check was asked, in this process or another: a host that waits needs one for
    // this user.
    if decision.reason == .guardPending, !check.isNeeded {
      check.ask(.keepingAnswer, core.clock.now())
    }
    if decision.chooseOnly, let session = sessions.session {
      try orgSelection.chooseOnly(session)
    }
  }

  // MARK: Changes

  /// Whether a `wait` that the host shows ends with this decision. Another `wait` ends it only when it
  /// says that the deadline passed without an answer.
  private func endsWait(_ decision: Decision) -> Bool {
    decision.screen != .wait
      || decision.reason == .serverUnreachable && hostView.shown.reason != decision.reason
  }

  /// Whether the host waits for a sign-in that is under way. A host that was shown something else
  /// since then is told about changes as usual.
  private var awaitsSignIn: Bool {
    pendingSignIn.pending != nil && hostView.shown.reason == .signingIn
  }

  /// Whether the check's deadline has passed and the host that waits for it was not told yet.
  func hasUntoldDecision(_ now: Instant) throws(Failure) -> Bool {
    guard hostView.shown.isWaiting, !awaitsSignIn, check.freshness(now) == .unreachable else {
      return false
    }
    // Without keys only the key store's next answer helps; `Scheduler` asks it again.
    guard core.keyRing.keys != nil else { return false }
    guard let assessment = try assessUnchanged() else { return true }
    return endsWait(SessionPolicy.decide(assessment.situation))
  }

  /// Emit a `decision` event when the host should show something else than it does.
  func emitIfChanged() throws(Failure) {
    guard !hostView.shown.fingerprint.isEmpty, !awaitsSignIn else { return }
    var situation = try assess(.navigate).situation
    // A host that waits is told when the check has answered. One that shows a screen goes on
    // meanwhile, as after a return to the foreground.
    if !hostView.shown.isWaiting { situation.occasion = .foreground }
    let decision = SessionPolicy.decide(situation)
    if hostView.shown.isWaiting, !endsWait(decision) {
      if decision.reason != .guardPending || check.isNeeded { return }
      // Nobody asks for the check that the host waits for. Its deadline may have passed meanwhile.
      check.askSilently(.keepingAnswer, core.clock.now())
      return try emitIfChanged()
    }
    let before = hostView.shown
    try carryOut(decision)
    let rendered = try presenter.render(decision)
    guard before.isWaiting || HostView.fingerprint(of: rendered) != before.fingerprint else {
      return
    }
    hostView.remember(rendered, decision.screen, decision.reason)
    try emit(rendered, over: before)
  }

  /// Show a decision and emit it.
  func emit(_ decision: Decision) throws(Failure) {
    let before = hostView.shown
    try emit(try show(decision), over: before)
  }

  /// When the event cannot be emitted, the host still shows what it did before; a later call emits it.
  private func emit(_ rendered: JSON, over before: Shown) throws(Failure) {
    do throws(Failure) {
      try events.emit(["type": "decision", "decision": rendered])
    } catch {
      hostView.restore(before)
      throw error
    }
  }
}
