import Base
import Policy
import Store
import Supabase
import Vault

/// What the host was last told to show.
struct Shown {
  /// What identifies it: screen, route, organisation, role and banners; of a selection also why it
  /// is shown, and what can be selected.
  var mark = ""
  /// A `wait` was told: an event must follow.
  var awaits = false
  /// Why. Of a `wait` that says already that the server cannot be reached, that alone is no news any
  /// more; one for a sign-in ends with that.
  var reason = Reason.sessionMissing
}

/// The membership check of this process.
struct GuardState {
  /// The server is to be asked, or being asked.
  var wanted = false
  /// Since when somebody waits for it, by the monotonic clock.
  var sinceMS: Int64 = 0
  /// It answered in this process.
  var confirmed = false
  /// The last try failed; the next one follows by back-off.
  var failed = false
}

/// What a decision depends on, and the row that it was read from.
final class Measured {
  let situation: Situation
  let row: SessionRow

  init(_ situation: Situation, _ row: SessionRow) {
    self.situation = situation
    self.row = row
  }
}

extension Engine {
  /// How far behind an earlier reading the device's clock may be before it counts as moved back.
  private static var clockToleranceMS: Int64 { 60_000 }
  /// Online rejections with unknown codes in a row, after which the sign-in is shown.
  private static var deniedAfter: Int64 { 3 }

  /// Ask the server for the memberships; `anew` restarts the time-out. `silently`: no decision
  /// follows, so a host that was told a deadline is held to that one.
  func askGuard(_ now: Instant, anew: Bool, silently: Bool = false) {
    let isTold = silently && (shown.reason == .guardPending || shown.reason == .signingIn)
    if !isTold, anew || !guarding.wanted { guarding.sinceMS = now.monotonicMS }
    if anew { guarding.confirmed = false }
    guarding.wanted = true
    guarding.failed = false
  }

  // MARK: Measuring

  /// Measure everything that a decision depends on.
  func measure(
    _ occasion: Situation.Occasion, outcome: Situation.Outcome = .none
  ) throws(Failure) -> Measured {
    let now = clock.now()
    let keys = try ring.state(for: main)
    if owesSalvage, keys == .ready { try carryOver() }
    let row = try sessions.read()
    let record = keys == .ready ? try synchronize(row) : .missing
    let running = occasion == .navigate
    let newest = max(
      row.seenWallMS, row.authenticatedMS, row.validatedMS, row.backgroundWallMS ?? 0)
    let movedBack = !running && now.wallMS < newest - Engine.clockToleranceMS
    let situation = Situation(
      occasion: occasion, keys: keys, record: record, clock: movedBack ? .movedBack : .steady,
      token: try isExpired(row, now) ? .expired : .valid,
      window: window(row, now, running: running), absence: absence(row, now),
      network: online ? .online : .offline, presence: presence(row), outcome: outcome,
      membership: membership(), freshness: freshness(now), lockedByUser: row.locked,
      denied: row.rejections >= Engine.deniedAfter)
    return Measured(situation, row)
  }

  /// Whether the access token has ended.
  func isExpired(_ row: SessionRow, _ now: Instant, margin: Int64 = 0) throws(Failure) -> Bool {
    try lifeLeft(row, now) <= margin
  }

  /// How long the access token still lives: in server time; by the monotonic clock if it came in this
  /// process. (Another process may have stored a newer one since: its expiry is another.)
  func lifeLeft(_ row: SessionRow, _ now: Instant) throws(Failure) -> Int64 {
    if let tokenEnds, tokenEnds.expiresMS == row.expiresMS, tokenEnds.bootID == now.bootID {
      return tokenEnds.monotonicMS - now.monotonicMS
    }
    return row.expiresMS - (try serverMS(now))
  }

  private func window(_ row: SessionRow, _ now: Instant, running: Bool) -> Situation.Window {
    if now.wallMS - row.validatedMS > configuration.limits.offlineLimitMS { return .pastLimit }
    // Somebody who works is not interrupted; the window counts when he comes back.
    if running { return .inside }
    return now.wallMS - row.authenticatedMS > configuration.limits.sessionWindowMS
      ? .outside : .inside
  }

  /// Time in the background: by the monotonic clock within a boot, else by the device's clock.
  private func absence(_ row: SessionRow, _ now: Instant) -> Situation.Absence {
    guard let since = row.backgroundWallMS else { return .brief }
    var away = now.wallMS - since
    if row.backgroundBoot == now.bootID, let monotonic = row.backgroundMonotonicMS {
      away = now.monotonicMS - monotonic
    }
    return away > configuration.limits.backgroundTimeoutMS ? .long : .brief
  }

  private func presence(_ row: SessionRow) -> Situation.Presence {
    switch configuration.limits.biometric {
    case .off: return .off
    case .required: return row.wrapBiometric == nil ? .required : .available
    case .preferred: return row.wrapBiometric == nil ? .unenrolled : .available
    }
  }

  private func membership() -> Situation.Membership {
    guard let open, let list = open.memberships else { return .unasked }
    if open.choice != nil {
      guard let chosen = open.chosen, chosen.active else { return .revoked }
      if !chosen.orgActive { return .disabled }
      return configuration.routes(for: chosen.role) == nil ? .unknownRole : .active
    }
    if list.isEmpty { return .noneAtAll }
    let usable = list.filter { $0.isUsable }
    if usable.count == 1 {
      return configuration.routes(for: usable[0].role) == nil ? .unknownRole : .single
    }
    return usable.isEmpty && !list.contains(where: { $0.active }) ? .noneAtAll : .unchosen
  }

  func freshness(_ now: Instant) -> Situation.Freshness {
    if guarding.confirmed { return .confirmed }
    guard guarding.wanted else { return .cached }
    guard online, !guarding.failed,
      now.monotonicMS - guarding.sinceMS < configuration.limits.guardTimeoutMS
    else { return .unreachable }
    return .pending
  }

  /// Whether data may be shown and changed: the session is open and no lock is due.
  func canUse(_ situation: Situation) -> Bool {
    guard situation.record == .open else { return false }
    let screen = SessionPolicy.decide(situation).screen
    return screen == .home || screen == .selectOrg || (screen == .wait && situation.keys == .ready)
  }

  /// The open session, or the failure that a data call answers with.
  func requireSession() throws(Failure) -> OpenSession {
    let situation = try measure(.navigate).situation
    _ = try keys()
    switch situation.record {
    case .missing, .ended, .corrupt: throw Failure(.sessionNone, "nobody is signed in")
    case .sealed: throw Failure(.sessionLocked, "the session is locked")
    case .open: break
    }
    guard canUse(situation), let open else {
      throw Failure(.sessionLocked, "the session is locked")
    }
    return open
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
    try present(try measure(occasion).situation)
  }

  /// Judge a situation, carry out what the verdict asks for, and render the decision.
  func present(_ situation: Situation) throws(Failure) -> JSON {
    var verdict = SessionPolicy.decide(situation)
    try carryOut(&verdict)
    return try show(verdict)
  }

  /// Render a verdict, and remember it as what the host was told.
  func show(_ verdict: Decision) throws(Failure) -> JSON {
    let decision = try render(verdict)
    remember(decision, verdict)
    // What waits to be handed out is older: a host that was locked is not told to go home after that.
    events.withdraw("decision")
    return decision
  }

  private func remember(_ decision: JSON, _ verdict: Decision) {
    shown = Shown(
      mark: mark(of: decision), awaits: verdict.screen == .wait, reason: verdict.reason)
  }

  private func carryOut(_ verdict: inout Decision) throws(Failure) {
    if verdict.quarantine { try quarantine() }
    if verdict.forget { try clearSession(ended: nil) }
    if verdict.lock { try lock(byUser: false) }
    askWhatIsAwaited(verdict)
    if verdict.chooseOnly, let open,
      let only = open.memberships?.first(where: { $0.isUsable })
    {
      _ = try choose(only.orgID, open)
    }
  }

  /// Somebody else has signed in, here or in another process, and what was asked was about the user
  /// before: whoever waits for the answer has to ask for it.
  private func askWhatIsAwaited(_ verdict: Decision) {
    if verdict.reason == .guardPending, !guarding.wanted { askGuard(clock.now(), anew: false) }
  }

  /// The device key is gone: the files can't be read here. They are kept, under another name.
  private func quarantine() throws(Failure) {
    let folder = configuration.dataFolder
    let now = clock.now()
    forgetSession()
    closeCache()
    flights = []
    main.close()
    _ = try Files.setAside(Files.mainPath(in: folder), "keyless", at: now.wallMS)
    _ = try Files.setAside(Files.cachePath(in: folder), "keyless", at: now.wallMS)
    main = try Files.openMain(in: folder)
    ring.forget()
  }

  /// Wipe the session row; the queue stays. `ended`: what the user is told at the next start.
  func clearSession(ended: String?) throws(Failure) {
    let row = try sessions.read()
    _ = try swapSession(expecting: row.generation) { (row) throws(Failure) in
      row.clear(ended: ended)
    }
    forgetSession()
    eraseCache()
  }

  /// Whether this is what a host that was told to wait is waiting for. Another `wait` is only if it
  /// says that the deadline has passed without an answer.
  private func endsWait(_ verdict: Decision) -> Bool {
    verdict.screen != .wait
      || verdict.reason == .serverUnreachable && shown.reason != verdict.reason
  }

  /// Whether the host waits for a sign-in that is under way. (One that has been shown something else
  /// since is told of that as ever.)
  private var awaitsSignIn: Bool { exchange != nil && shown.reason == .signingIn }

  /// Whether the guard's deadline has passed and the host that waits for it was not told yet.
  func owesDecision(_ now: Instant) throws(Failure) -> Bool {
    guard shown.awaits, !awaitsSignIn, freshness(now) == .unreachable else { return false }
    return endsWait(SessionPolicy.decide(try measure(.navigate).situation))
  }

  /// An event follows when what the host shows is no longer what it should show.
  func noticeChange() throws(Failure) {
    guard !shown.mark.isEmpty, !awaitsSignIn else { return }
    var situation = try measure(.navigate).situation
    // Whoever waits for the guard is told when it has answered; whoever works goes on meanwhile.
    if !shown.awaits { situation.occasion = .foreground }
    var verdict = SessionPolicy.decide(situation)
    if shown.awaits, !endsWait(verdict) {
      if verdict.reason != .guardPending || guarding.wanted { return }
      // The deadline that was told may have passed meanwhile.
      askGuard(clock.now(), anew: false, silently: true)
      return try noticeChange()
    }
    let before = shown
    try carryOut(&verdict)
    let decision = try render(verdict)
    guard shown.awaits || mark(of: decision) != shown.mark else { return }
    remember(decision, verdict)
    try tell(decision, over: before)
  }

  /// Tell the host by an event what is shown now. What cannot be told is not shown either: a later
  /// call tells it.
  func tell(_ decision: JSON, over before: Shown) throws(Failure) {
    do throws(Failure) {
      try events.tell(["type": "decision", "decision": decision], meta)
    } catch {
      shown = before
      throw error
    }
  }

  // MARK: Rendering

  func mark(of decision: JSON) -> String {
    var parts: [String] = []
    parts.append(decision.string("screen") ?? "")
    parts.append(decision.string("route") ?? "")
    parts.append(decision["org"]?.string("id") ?? "")
    parts.append(decision["org"]?.string("role") ?? "")
    for banner in decision["banners"]?.elements ?? [] {
      parts.append(banner.string("code") ?? "")
    }
    for org in decision["orgs"]?.elements ?? [] {
      parts.append(decision.string("reason") ?? "")
      parts.append(org.string("org_id") ?? "")
      parts.append(org.string("status") ?? "")
    }
    return parts.joined(separator: "|")
  }

  func render(_ verdict: Decision) throws(Failure) -> JSON {
    let now = clock.now()
    let chosen = verdict.screen == .home ? open?.chosen : nil
    var deadline: Int64?
    if verdict.reason == .signingIn, let exchange {
      deadline = now.wallMS + exchange.deadlineMS - now.monotonicMS
    } else if verdict.screen == .wait {
      let left = guarding.sinceMS + configuration.limits.guardTimeoutMS - now.monotonicMS
      deadline = now.wallMS + max(0, left)
    }
    return [
      "screen": .string(verdict.screen.rawValue),
      "reason": .string(verdict.reason.rawValue),
      "route": JSON(chosen.flatMap { configuration.routes(for: $0.role)?.home }),
      "org": chosen.map {
        ["id": .string($0.orgID.text), "name": .string($0.name), "role": .string($0.role)]
      } ?? .null,
      "message": message(for: verdict.reason),
      "methods": verdict.screen == .signIn ? methods() : [],
      "orgs": verdict.screen == .selectOrg ? organisations() : [],
      "banners": banners(Banners(decision: verdict), asOf: try sessions.read().membershipsMS),
      "deadline_ms": JSON(deadline),
    ]
  }

  func methods() -> JSON {
    .array(
      configuration.methods.map {
        [
          "id": .string($0.id), "label": .string($0.label), "flow": .string($0.flow.rawValue),
        ]
      })
  }

  func organisations() -> JSON {
    .array((open?.memberships ?? []).map { organisation($0) })
  }

  func organisation(_ it: Membership) -> JSON {
    [
      "org_id": .uuid(it.orgID), "name": .string(it.name), "role": .string(it.role),
      "status": it.active ? (it.orgActive ? "active" : "disabled") : "revoked",
      "current": .bool(it.orgID == open?.choice),
    ]
  }

  /// `asOf`: how old what is shown is, where a banner speaks of that.
  func banners(_ notices: Banners, asOf: Int64?) -> JSON {
    .array(
      notices.banners.map {
        [
          "code": .string($0.rawValue), "tone": .string($0.tone.rawValue),
          "text": words($0.rawValue),
          "as_of_ms": JSON($0.tellsAge ? asOf : nil),
        ]
      })
  }

  func message(for reason: Reason) -> JSON {
    guard let messageCode = reason.messageCode else { return .null }
    return [
      "code": .string(reason.rawValue),
      "text": .string(
        Messages.text(messageCode, configuration.language, organisation: open?.chosen?.name)),
    ]
  }

  func words(_ code: String) -> JSON {
    guard let word = MessageCode(rawValue: code) else { return .string("") }
    return .string(Messages.text(word, configuration.language))
  }
}
