import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct SchedulerTests {
  private func name(_ job: Scheduler.Job?) -> String {
    switch job {
    case .refresh: "refresh"
    case .validate: "validate"
    case .membershipCheck: "membershipCheck"
    case .signIn: "signIn"
    case .revoke: "revoke"
    case .upload: "upload"
    case .readBack: "readBack"
    case .rows: "contacts"
    case .summary: "summary"
    case .live: "live"
    case nil: "nothing"
    }
  }

  private func next(_ rig: Rig) throws -> String { name(try rig.scheduler.next(rig.now)) }

  private func send(_ rig: Rig) throws {
    try rig.loop.send(try #require(try rig.scheduler.next(rig.now)), rig.now)
  }

  /// Let another, running process hold the pending items.
  private func lease(_ rig: Rig, boot: String = "boot") throws {
    _ = try rig.core.queue.take(
      of: try rig.session.owner, holder: Holder(bootID: boot, nonce: 5).bytes,
      until: try rig.core.steadyToStore(rig.now) + 60_000, maximumSize: 1_000_000
    ) { _ in 10 }
  }

  private func readBack(_ rig: Rig, _ number: Int) throws {
    try rig.add(id(number))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[]"), rig.now)
  }

  // MARK: Reading changes nothing

  private static let situations = [
    "nothing to do", "work", "late request", "lost lease", "due item", "held items",
    "another user's read-back", "another process signed in", "recovery", "waiting host",
    "no keys", "locked session", "back-off", "offline", "notice", "pull",
  ]

  private func make(_ situation: String) throws -> Rig {
    let rig = try Rig.atHome()
    rig.pulls.forgetAll()
    rig.tokens.confirm(rig.now)
    switch situation {
    case "work": try rig.add(id(1))
    case "late request":
      try rig.add(id(1))
      try send(rig)
      rig.advance(65_000)
    case "lost lease":
      try rig.add(id(1))
      try lease(rig, boot: "earlier")
    case "due item":
      try rig.add(id(1))
      try rig.core.queue.transition(
        try #require(try rig.row(id(1))).sequence,
        .waiting(.time(Pause(since: 0, until: try rig.core.steady(rig.now)))))
    case "held items":
      try rig.add(id(1))
      try rig.core.queue.transition(
        try #require(try rig.row(id(1))).sequence, .waiting(.organisation))
      rig.advance(900_000)
    case "another user's read-back":
      try readBack(rig, 1)
      try rig.signIn(bob)
      try rig.list(member(orgA))
      rig.pulls.forgetAll()
    case "another process signed in":
      try Rig(folder: rig.folder, keyStore: rig.keyStore).signIn(bob)
    case "recovery":
      rig.core.database.close()
      try rig.folder.damage("holdfast.db")
      let next = try Rig(folder: rig.folder, keyStore: rig.keyStore)
      _ = try next.core.keyRing.state(for: next.core.database)
      return next
    case "waiting host":
      rig.check.ask(.discardingAnswer, rig.now)
      try rig.decider.decide(.navigate)
      _ = try rig.takeEvents()
      rig.advance(2500)
    case "no keys": rig.sessions.reset(.file)
    case "locked session": try rig.lock.lock(.user)
    case "back-off":
      try rig.add(id(1))
      try rig.pauses.backOff(.upload, try response(503), rig.now)
    case "offline":
      try rig.add(id(1))
      _ = rig.reachability.setOnline(false)
    case "notice": try rig.notices.add("item_parked", reason: "server_rule", owner: nil)
    case "pull": rig.pulls.requirePull()
    default: break
    }
    return rig
  }

  /// Situations in which something has to change before a request can be chosen.
  private static let prepared: Set = [
    "lost lease", "due item", "held items", "another user's read-back",
    "another process signed in", "recovery",
  ]

  @Test(arguments: situations)
  func askingChangesNothing(_ situation: String) throws {
    // Given
    let rig = try make(situation)
    let before = rig.snapshot()
    // When
    for _ in 0..<2 {
      _ = try rig.scheduler.next(rig.now)
      _ = try rig.scheduler.hasWork(.all, rig.now)
      _ = try rig.scheduler.nextWakeMS(.all, rig.now)
    }
    // Then
    let after = rig.snapshot()
    expect(after.memory, equals: before.memory)
    expect(after.version, equals: before.version)
    expect(after.files, equals: before.files)
    expect(after.keyLoads, equals: before.keyLoads)
  }

  @Test(arguments: situations)
  func whatHasToBePreparedIsAReasonToPoll(_ situation: String) throws {
    // Given
    let rig = try make(situation)
    let idle: Set = ["nothing to do", "no keys", "locked session", "back-off", "offline"]
    // When, then
    try expect(rig.scheduler.hasWork(.all, rig.now), equals: !idle.contains(situation))
    try expect(rig.scheduler.nextWakeMS(.all, rig.now) == 0, equals: !idle.contains(situation))
  }

  @Test(arguments: situations)
  func preparingDoesEachThingOnce(_ situation: String) throws {
    // Given
    let rig = try make(situation)
    let before = rig.snapshot()
    // When
    try rig.scheduler.prepare(rig.now)
    // Then it changes something only where something has to change
    let once = rig.snapshot()
    expect(once != before, equals: Self.prepared.contains(situation))
    // And a second time, nothing
    try rig.scheduler.prepare(rig.now)
    expect(rig.snapshot(), equals: once)
  }

  /// What was prepared, as it is afterwards.
  @Test func preparingMakesWorkSendable() throws {
    try expect(preparedState("lost lease"), equals: "pending, attempts 1; upload")
    try expect(preparedState("due item"), equals: "pending; upload")
    try expect(preparedState("held items"), equals: "waits for organisation; membershipCheck")
    try expect(preparedState("another user's read-back"), equals: "pending, attempts 1; revoke")
    try expect(preparedState("recovery").hasPrefix("erased"))
  }

  private func preparedState(_ situation: String) throws -> String {
    let rig = try make(situation)
    try rig.scheduler.prepare(rig.now)
    expect(rig.uploads.readBacks.isEmpty)
    expect(!rig.recovery.isNeeded)
    return "\(try rig.state(id(1))); \(try next(rig))"
  }

  @Test func preparingFollowsAnotherProcessesSession() throws {
    let rig = try make("another process signed in")
    try rig.scheduler.prepare(rig.now)
    try expect(rig.session.userID, equals: bob)
  }

  // MARK: Priorities

  @Test func theMostUrgentRequestIsFirst() throws {
    // Given a rig that has every kind of work
    let rig = try Rig.atHome()
    try rig.revocations.add(try rig.session, expiresMS: Int64.max / 2)
    rig.pendingSignIn.begin(
      PendingSignIn(
        .password(email: "a", password: "b"), over: try rig.sessions.row(),
        deadlineMS: rig.now.monotonicMS + 60_000))
    try readBack(rig, 1)
    try rig.add(id(2))
    rig.tokens.requireValidation()
    rig.tokens.refuse()
    rig.check.ask(.keepingAnswer, rig.now)
    _ = rig.live.add(id(1), in: orgA, rig.now)
    let live = try #require(rig.live.next)
    rig.pulls.requirePull()
    // When each is done in turn
    var order: [String] = []
    for _ in 0..<10 {
      order.append(try next(rig))
      switch order.last {
      case "signIn": rig.pendingSignIn.end()
      case "revoke":
        try rig.core.revocations.remove(
          try #require(
            try rig.core.revocations.due(
              now: rig.core.steady(rig.now), longestMS: Backoff.maxDelayMS)
          ).id)
      case "refresh": rig.tokens.forgetRefusal()
      case "validate": rig.tokens.confirm(rig.now)
      case "membershipCheck": rig.check.confirm()
      case "live": rig.live.remove(live)
      case "readBack": try rig.uploader.abandonReadBacks()
      case "upload":
        try rig.core.queue.removeAll(of: try rig.session.owner)
      case "contacts":
        rig.pulls.begin(RowPull(contacts(orgA), after: nil));
        rig.pulls.finishContacts(rig.now.monotonicMS)
      case "summary": rig.pulls.finishSummary(rig.now.monotonicMS)
      default: break
      }
    }
    // Then
    expect(
      order,
      equals: [
        "signIn", "revoke", "refresh", "validate", "membershipCheck", "live", "readBack", "upload",
        "contacts", "summary",
      ])
    try expect(next(rig), equals: "nothing")
  }

  /// Work that is there, what stands in its way, and what is sent instead.
  @Test(arguments: [
    ("upload", "nothing", "upload"), ("upload", "offline", "nothing"),
    ("upload", "no keys", "nothing"),
    ("upload", "upload pause", "nothing"), ("upload", "refresh pause", "upload"),
    ("upload", "pull pause", "upload"), ("upload", "check pause", "upload"),
    ("upload", "expired token", "refresh"),
    ("upload", "expired token, refresh pause", "nothing"), ("upload", "refused token", "refresh"),
    ("upload", "another process refreshes", "nothing"), ("upload", "upload in flight", "nothing"),
    ("upload", "locked", "nothing"), ("upload", "lock due", "nothing"),
    ("pull", "lock due", "nothing"), ("check", "lock due", "nothing"),
    ("pull", "nothing", "contacts"),
    ("pull", "pull pause", "summary"), ("pull", "upload pause", "contacts"),
    ("pull", "upload in flight", "nothing"),
    ("pull", "another process uploads", "nothing"), ("pull", "item that may be stored", "contacts"),
    ("summary", "item that may be stored", "nothing"), ("summary", "nothing", "summary"),
    ("summary", "summary pause", "nothing"), ("summary", "pull pause", "summary"),
    ("pull", "ended membership", "nothing"), ("validation", "validate pause", "nothing"),
    ("validation", "refresh pause", "validate"), ("validation", "upload pause", "validate"),
    ("check", "check pause", "nothing"), ("check", "upload pause", "membershipCheck"),
    ("check", "refresh pause", "membershipCheck"),
  ])
  func whatStandsInTheWay(_ work: String, _ obstacle: String, _ expected: String) throws {
    // Given
    let rig = try Rig.atHome()
    rig.pulls.forgetAll()
    rig.tokens.confirm(rig.now)
    if obstacle == "ended membership" { try rig.list(member(orgB)) }
    rig.pulls.forgetAll()
    switch work {
    case "pull": rig.pulls.requirePull()
    case "summary":
      rig.pulls.requirePull()
      rig.pulls.begin(RowPull(contacts(orgA), after: nil))
      rig.pulls.finishContacts(rig.now.monotonicMS)
    case "validation": rig.tokens.requireValidation()
    case "check": rig.check.ask(.keepingAnswer, rig.now)
    default: break
    }
    // When
    switch obstacle {
    case "offline": _ = rig.reachability.setOnline(false)
    case "upload pause": try rig.pauses.backOff(.upload, try response(503), rig.now)
    case "refresh pause": try rig.pauses.backOff(.refresh, try response(503), rig.now)
    case "validate pause": try rig.pauses.backOff(.validate, try response(503), rig.now)
    case "check pause": try rig.pauses.backOff(.membershipCheck, try response(503), rig.now)
    case "summary pause": try rig.pauses.backOff(.summary, try response(503), rig.now)
    case "pull pause": try rig.pauses.backOff(.pull, try response(503), rig.now)
    case "expired token", "expired token, refresh pause":
      rig.advance(3_600_000)
      if obstacle != "expired token" {
        try rig.pauses.backOff(.refresh, try response(503), rig.now)
      }
    case "refused token": rig.tokens.refuse()
    case "another process refreshes":
      rig.tokens.refuse()
      try rig.core.leases.take(
        "refresh", holder: Holder(bootID: "boot", nonce: 5).bytes,
        until: try rig.core.steadyToStore(rig.now) + 10_000)
    case "upload in flight":
      try rig.add(id(8))
      rig.pulls.forgetAll()
      try rig.uploader.send(try rig.session, rig.now)
      if work == "pull" { rig.pulls.requirePull() }
    case "another process uploads":
      try rig.add(id(8))
      try lease(rig)
    case "item that may be stored":
      try rig.add(id(8))
      let sequence = try #require(try rig.row(id(8))).sequence
      try rig.core.queue.transition(sequence, .pending, charged: true)
      try rig.core.queue.transition(sequence, .waiting(.organisation))
    case "lock due":
      // Nobody has been here for an hour, and no call has locked yet.
      let now = rig.now
      try rig.sessions.patch { (row) throws(Failure) in
        row.backgroundWallMS = now.wallMS
        row.backgroundMonotonicMS = now.monotonicMS
        row.backgroundBoot = now.bootID
      }
      rig.advance(1_000_000)
    case "locked":
      try rig.add(id(1))
      try rig.lock.lock(.user)
    default: break
    }
    if work == "upload", obstacle != "locked" { try rig.addOffTheRecord(id(1)) }
    if obstacle == "no keys" { rig.core.keyRing.forget() }
    // Then
    try expect(next(rig), equals: expected)
  }

  @Test func afterAFailureOneRequestAtATimeProbesForItsPurposeAndNothingElseWaits() throws {
    // Given a pause of uploads that is over, and a check that is due
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.pauses.backOff(.upload, try response(503), rig.now)
    rig.check.ask(.keepingAnswer, rig.now)
    try expect(next(rig), equals: "membershipCheck")
    try send(rig)
    try expect(next(rig), equals: "contacts")
    // When
    rig.advance(try rig.pauses.leftMS(.upload, rig.now))
    // Then the check in flight holds up no upload, and the upload is a probe
    try expect(next(rig), equals: "upload")
    try expect(rig.pauses.isProbing(.upload))
    try send(rig)
    try rig.add(id(2))
    try expect(next(rig), equals: "nothing")
  }

  @Test func nothingIsSentTwice() throws {
    // Given work of each kind that may be in flight beside others
    let rig = try Rig.atHome()
    rig.tokens.requireValidation()
    rig.check.ask(.keepingAnswer, rig.now)
    rig.pulls.requirePull()
    // When
    var order: [String] = []
    while order.count < 10, let job = try rig.scheduler.next(rig.now) {
      order.append(name(job))
      try rig.loop.send(job, rig.now)
    }
    // Then
    expect(order, equals: ["validate", "membershipCheck", "contacts", "summary"])
  }

  // MARK: Waking

  /// What falls due, and when.
  @Test(arguments: [
    ("nothing", nil as Int64?), ("request", 65_000), ("sign-in", 7000), ("waiting host", 2500),
    ("waiting for keys", 10_000), ("suspended item", 5000), ("another's lease", 5000),
    ("held items", 900_000), ("pull", 900_000), ("older summary", 840_000),
    ("refresh by another process", 1000),
  ])
  func theNextWakeIsTheEarliestThingThatFallsDue(_ cause: String, _ wakeMS: Int64?) throws {
    // Given a session that needs no refresh for long
    let rig = try Rig()
    try rig.signIn(expiresInS: 86_400)
    try rig.list(member(orgA), member(orgB))
    try expect(rig.sessions.choose(orgA, rig.session))
    _ = try rig.takeEvents()
    rig.pulls.forgetAll()
    // When
    switch cause {
    case "request":
      try rig.add(id(1))
      try send(rig)
      _ = rig.inFlight.last(rig.now)
    case "sign-in":
      rig.pendingSignIn.begin(
        PendingSignIn(
          .password(email: "a", password: "b"), over: try rig.sessions.row(),
          deadlineMS: rig.now.monotonicMS + 7000))
      try rig.loop.send(try #require(try rig.scheduler.next(rig.now)), rig.now)
      _ = rig.inFlight.last(rig.now)
    case "waiting host":
      rig.check.ask(.discardingAnswer, rig.now)
      try rig.decider.decide(.navigate)
      _ = try rig.takeEvents()
      try send(rig)
      _ = rig.inFlight.last(rig.now)
    case "waiting for keys":
      rig.sessions.reset(.file)
      rig.keyStore.refusal = .locked
      try rig.decider.decide(.navigate)
      _ = try rig.takeEvents()
    case "suspended item":
      try rig.add(id(1))
      try rig.core.queue.transition(
        try #require(try rig.row(id(1))).sequence,
        .waiting(.time(Pause(since: 0, until: try rig.core.steadyToStore(rig.now) + 5000))))
    case "another's lease":
      try rig.add(id(1))
      try lease(rig)
    case "held items":
      rig.check.ask(.discardingAnswer, rig.now)
      rig.check.confirm()
      try rig.add(id(1))
      try rig.core.queue.transition(
        try #require(try rig.row(id(1))).sequence, .waiting(.organisation))
    case "pull": rig.pulls.finishContacts(rig.now.monotonicMS)
    case "older summary":
      rig.pulls.finishSummary(rig.now.monotonicMS - 60_000)
      rig.pulls.finishContacts(rig.now.monotonicMS)
    case "refresh by another process":
      rig.tokens.refuse()
      try rig.core.leases.take(
        "refresh", holder: Holder(bootID: "boot", nonce: 5).bytes,
        until: try rig.core.steadyToStore(rig.now) + 10_000)
    default: break
    }
    // Then; without a cause only the refresh is left
    let margin = 86_400_000 - rig.core.configuration.limits.refreshMarginMS
    try expect(rig.scheduler.nextWakeMS(.all, rig.now), equals: wakeMS ?? margin)
  }

  @Test func withoutKeysNoPauseWakes() throws {
    let rig = try Rig.atHome()
    try rig.pauses.backOff(.upload, try response(503), rig.now)
    rig.sessions.reset(.file)
    try expect(rig.scheduler.nextWakeMS(.all, rig.now), equals: nil)
  }

  /// The purpose of the pause, and what is sent after it.
  @Test(arguments: [
    (Purpose.upload, "upload"), (.live, "live"), (.refresh, "refresh"), (.validate, "validate"),
    (.membershipCheck, "membershipCheck"), (.pull, "contacts"), (.summary, "summary"),
  ])
  func aPauseLastsToItsLastMillisecond(_ purpose: Purpose, _ expected: String) throws {
    // Given one thing to send, and its pause
    let rig = try Rig.atHome()
    rig.check.confirm()
    rig.tokens.confirm(rig.now)
    rig.pulls.forgetAll()
    switch purpose {
    case .upload: try rig.add(id(1))
    case .live: _ = rig.live.add(id(1), in: orgA, rig.now)
    case .refresh: rig.tokens.refuse()
    case .validate: rig.tokens.requireValidation()
    case .membershipCheck: rig.check.ask(.keepingAnswer, rig.now)
    default:
      rig.pulls.requirePull()
      if purpose == .summary {
        rig.pulls.begin(RowPull(contacts(orgA), after: nil))
        rig.pulls.finishContacts(rig.now.monotonicMS)
      } else {
        rig.pulls.finishSummary(rig.now.monotonicMS)
      }
    }
    try expect(next(rig), equals: expected)
    try rig.pauses.backOff(purpose, try response(503), rig.now)
    // When, then
    rig.advance(try rig.pauses.leftMS(purpose, rig.now) - 1)
    try expect(next(rig), equals: "nothing")
    rig.advance(1)
    try expect(next(rig), equals: expected)
  }

  @Test func offlineOnlyDeadlinesWake() throws {
    let rig = try Rig.atHome()
    _ = rig.reachability.setOnline(false)
    try expect(rig.scheduler.nextWakeMS(.all, rig.now), equals: nil)
  }
}

extension Rig {
  /// Add an item whatever the session's lock and organisation are.
  fileprivate func addOffTheRecord(_ id: UUID) throws {
    let row = QueueRow()
    let keys = try core.keys()
    row.owner = keys.userTag(alice)
    row.item = keys.itemTag(id, row.owner)
    row.org = keys.orgTag(orgA)
    row.batchKey = row.org
    row.body = [1]
    row.size = 1
    _ = try core.queue.insert(row)
  }
}
