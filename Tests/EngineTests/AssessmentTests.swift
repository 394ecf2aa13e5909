import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing
import Vault

@testable import Engine

@Suite struct AssessmentTests {
  private static let hourMS: Int64 = 3_600_000
  private static let dayMS: Int64 = 86_400_000
  private typealias WindowCase = (Int64, Int64, Situation.Occasion, Situation.Window)
  private static let windows: [WindowCase] = [
    (12 * hourMS, 0, .resume, .inside), (12 * hourMS + 1, 0, .resume, .outside),
    (12 * hourMS + 1, 0, .foreground, .outside), (12 * hourMS + 1, 0, .unlock, .outside),
    (12 * hourMS + 1, 0, .navigate, .inside), (0, 14 * dayMS, .resume, .inside),
    (0, 14 * dayMS + 1, .resume, .pastLimit), (0, 14 * dayMS + 1, .navigate, .pastLimit),
  ]
  private typealias MembershipCase = ([String]?, Bool, Situation.Membership)
  private static let memberships: [MembershipCase] = [
    (nil, true, .unasked), ([], false, .noneAtAll),
    ([], true, .revoked), ([member(orgB)], true, .revoked), ([member(orgA)], true, .active),
    ([member(orgA, status: "ended")], true, .revoked),
    ([member(orgA, status: "ended", orgStatus: "closed")], true, .revoked),
    ([member(orgA, orgStatus: "closed")], true, .disabled),
    ([member(orgA, role: "cook", orgStatus: "closed")], true, .disabled),
    ([member(orgA, role: "cook")], true, .unknownRole), ([member(orgA)], false, .single),
    ([member(orgA, role: "cook")], false, .unknownRole),
    ([member(orgA), member(orgB)], false, .unchosen),
    ([member(orgA), member(orgB, status: "ended")], false, .single),
    ([member(orgA), member(orgB, orgStatus: "closed")], false, .single),
    ([member(orgA, status: "ended")], false, .noneAtAll),
    ([member(orgA, orgStatus: "closed")], false, .unchosen),
  ]
  private let now = Rig.start

  private func configuration(_ policy: String = "") throws -> Configuration {
    try Configuration(
      try json(
        #"{"data_dir":"x","policy":{\#(policy)},"auth_methods":[],"template":"volunteers","#
          + #""backend":{"url":"https://x.co","api_key":"k"}}"#))
  }

  /// The row of a session that was confirmed just now.
  private func row() -> SessionRow {
    let row = SessionRow()
    row.noteAuthentication(now)
    row.noteValidation(now, serverMS: now.wallMS)
    row.membershipsMS = now.wallMS
    row.wrapBiometric = [1]
    return row
  }

  private func situation(
    _ occasion: Situation.Occasion = .resume, row: SessionRow? = nil, session: OpenSession? = nil,
    policy: String = "", tokenLifeLeftMS: Int64 = 1, isOnline: Bool = true,
    isOnlyHeld: Bool = false
  ) throws -> Situation {
    Assessment(
      Facts(
        occasion: occasion, keys: .ready, record: .open, row: row ?? self.row(), session: session,
        now: now, isOnlyHeld: isOnlyHeld, tokenLifeLeftMS: tokenLifeLeftMS, isOnline: isOnline,
        freshness: .cached),
      try configuration(policy)
    ).situation
  }

  @Test func factsThatNeedNoJudgementArePassedOn() throws {
    // Given
    let row = row()
    row.locked = true
    // When
    let assessment = Assessment(
      Facts(
        occasion: .unlock, keys: .locked, record: .sealed, row: row, session: nil, now: now,
        isOnlyHeld: false, tokenLifeLeftMS: 0, isOnline: false, freshness: .unreachable),
      try configuration())
    let situation = assessment.situation
    // Then
    expect(situation.occasion, equals: .unlock)
    expect(situation.keys, equals: .locked)
    expect(situation.record, equals: .sealed)
    expect(situation.network, equals: .offline)
    expect(situation.freshness, equals: .unreachable)
    expect(situation.lockedByUser)
    expect(situation.outcome, equals: .none)
    expect(assessment.row === row)
    try expect(self.situation().network, equals: .online)
    try expect(!self.situation().lockedByUser)
  }

  @Test(arguments: [(Int64(-1), true), (0, true), (1, false)])
  func aTokenIsExpiredWhenNothingIsLeft(_ leftMS: Int64, _ isExpired: Bool) throws {
    try expect(situation(tokenLifeLeftMS: leftMS).token, equals: (isExpired ? .expired : .valid))
  }

  /// Which reading is newest, how far the clock is behind it, the occasion: was it moved back?
  @Test(arguments: [
    ("seen", Int64(60_000), Situation.Occasion.resume, false), ("seen", 60_001, .resume, true),
    ("authenticated", 60_001, .resume, true), ("validated", 60_001, .foreground, true),
    ("background", 60_001, .unlock, true), ("background", 60_000, .unlock, false),
    ("seen", 9_000_000, .navigate, false), ("none", 0, .resume, false),
  ])
  func aClockClearlyBehindAnEarlierReadingWasMovedBack(
    _ reading: String, _ behindMS: Int64, _ occasion: Situation.Occasion, _ isMovedBack: Bool
  ) throws {
    let row = row()
    let at = now.wallMS + behindMS
    switch reading {
    case "seen": row.seenWallMS = at
    case "authenticated":
      row.noteAuthentication(
        Instant(wallMS: at, monotonicMS: now.monotonicMS, bootID: now.bootID))
    case "validated":
      row.noteValidation(
        Instant(wallMS: at, monotonicMS: now.monotonicMS, bootID: now.bootID), serverMS: at)
    case "background": row.backgroundWallMS = at
    default: break
    }
    let expected: Situation.Clock = isMovedBack ? .movedBack : .steady
    try expect(situation(occasion, row: row).clock, equals: expected)
  }

  /// Hours since authentication, days since validation, the occasion. The window is 12 hours, the
  /// offline limit 14 days.
  @Test(arguments: windows)
  func theWindowIsNotEnforcedDuringUseAndTheLimitAlways(
    _ authenticatedAgo: Int64, _ validatedAgo: Int64, _ occasion: Situation.Occasion,
    _ window: Situation.Window
  ) throws {
    let row = row()
    row.noteAuthentication(
      Instant(
        wallMS: now.wallMS - authenticatedAgo, monotonicMS: now.monotonicMS - authenticatedAgo,
        bootID: now.bootID))
    row.noteValidation(
      Instant(
        wallMS: now.wallMS - validatedAgo, monotonicMS: now.monotonicMS - validatedAgo,
        bootID: now.bootID), serverMS: now.wallMS - validatedAgo)
    try expect(situation(occasion, row: row).window, equals: window)
  }

  /// The time since the user's proof by the device's clock and by the monotonic clock, whether the
  /// device was started since, and the window of 12 hours.
  @Test(arguments: [
    (Int64(0), Int64(13), false, Situation.Window.outside), (13, 0, false, .inside),
    (-9000, 13, false, .outside), (0, 1, true, .inside), (13, 1, true, .outside),
  ])
  func movingTheClockNeitherExtendsNorEndsTheWindowWithinABoot(
    _ wallHours: Int64, _ monotonicHours: Int64, _ isAnotherBoot: Bool,
    _ window: Situation.Window
  ) throws {
    let row = row()
    row.noteAuthentication(
      Instant(
        wallMS: now.wallMS - wallHours * 3_600_000,
        monotonicMS: now.monotonicMS - monotonicHours * 3_600_000,
        bootID: isAnotherBoot ? "earlier" : now.bootID))
    try expect(situation(.foreground, row: row).window, equals: window)
  }

  /// The server's time at the validation minus the device's, the time since by the device's clock and
  /// by the monotonic clock, whether the device was started since, and the age.
  @Test(arguments: [
    (Int64(0), 14 * dayMS + 1, Int64(0), false, Situation.Window.inside),
    (0, 0, 14 * dayMS + 1, false, .pastLimit), (0, 14 * dayMS + 1, 0, true, .pastLimit),
    (0, 0, 14 * dayMS + 1, true, .inside), (dayMS, 15 * dayMS, 0, true, .inside),
    (dayMS, 15 * dayMS + 1, 0, true, .pastLimit), (-dayMS, 14 * dayMS, 0, true, .inside),
    (-dayMS, 14 * dayMS + 1, 0, true, .pastLimit),
  ])
  func theLimitIsMeasuredByTheMonotonicClockAndAcrossBootsByTheShorterTime(
    _ serverAhead: Int64, _ wallAgo: Int64, _ monotonicAgo: Int64, _ isAnotherBoot: Bool,
    _ window: Situation.Window
  ) throws {
    let row = row()
    let at = now.wallMS - wallAgo
    row.noteValidation(
      Instant(
        wallMS: at, monotonicMS: now.monotonicMS - monotonicAgo,
        bootID: isAnotherBoot ? "earlier" : now.bootID), serverMS: at + serverAhead)
    try expect(situation(row: row).window, equals: window)
  }

  /// Time in the background by the device's clock, by the monotonic clock (nil: not stored), and
  /// whether the device was started since. The limit is 5 minutes.
  @Test(arguments: [
    (Int64(300_000), nil as Int64?, false, false), (300_001, nil, false, true),
    (0, 300_001, false, true), (900_000, 300_000, false, false), (0, 300_001, true, false),
    (300_001, 0, true, true),
  ])
  func anAbsenceIsMeasuredByTheMonotonicClockWithinABoot(
    _ wallAway: Int64, _ monotonicAway: Int64?, _ isAnotherBoot: Bool, _ isLong: Bool
  ) throws {
    let row = row()
    row.backgroundWallMS = now.wallMS - wallAway
    row.backgroundMonotonicMS = monotonicAway.map { now.monotonicMS - $0 }
    row.backgroundBoot = isAnotherBoot ? "earlier" : now.bootID
    try expect(situation(row: row).absence, equals: (isLong ? .long : .brief))
  }

  @Test func withoutABackgroundThereIsNoAbsence() throws {
    try expect(situation().absence, equals: .brief)
  }

  /// Whether there is a biometric key, and whether this is the process that was left.
  @Test(arguments: [(false, false, true), (false, true, false), (true, false, false)])
  func atOnceEndsTheSessionWithoutABiometricKeyInOtherProcesses(
    hasWrap: Bool, isOnlyHeld: Bool, isLong: Bool
  ) throws {
    let row = row()
    row.wrapBiometric = hasWrap ? [1] : nil
    row.noteBackground(now, goesOn: false)
    let found = try situation(
      row: row, policy: #""lock_on_background":"at_once""#, isOnlyHeld: isOnlyHeld)
    expect(found.absence, equals: (isLong ? .long : .brief))
  }

  @Test(arguments: [
    ("required", true, Situation.Presence.available), ("required", false, .requiredButMissing),
    ("preferred", true, .available), ("preferred", false, .unenrolled), ("off", true, .off),
    ("off", false, .off),
  ])
  func presenceFollowsThePolicyAndTheWrap(
    _ policy: String, _ hasWrap: Bool, _ presence: Situation.Presence
  ) throws {
    let row = row()
    row.wrapBiometric = hasWrap ? [1] : nil
    try expect(
      situation(row: row, policy: "\"biometric\":\"\(policy)\"").presence, equals: presence)
  }

  // MARK: Memberships

  private func session(_ list: [String]?, choice: UUID?) throws -> OpenSession {
    try Vault.start()
    let reply = try TokenReply.read(try json(tokenReply(alice)))
    let memberships = try list.map { rows in
      let body = "[" + rows.joined(separator: ",") + "]"
      return MembershipsPage(try #require(try response(200, body).rows)).all
    }
    return OpenSession(
      row: SessionRow(), owner: [1], tokens: Tokens(reply), vault: try Key.random(),
      cacheKey: try Key.random(), queueKey: try Key.random(), choice: choice,
      memberships: memberships)
  }

  /// What the server listed, whether organisation A is chosen, and what that means.
  @Test(arguments: memberships)
  func theMembershipFollowsFromTheListAndTheChoice(
    _ list: [String]?, _ isChosen: Bool, _ membership: Situation.Membership
  ) throws {
    let session = try session(list, choice: isChosen ? orgA : nil)
    try expect(situation(session: session).membership, equals: membership)
  }

  /// The session may be confirmed all the while (LCK-8).
  @Test(arguments: [(0, true), (100_000, true), (100_001, false)] as [(Int64, Bool)])
  func aListCountsForTheOfflineLimit(_ ageMS: Int64, _ counts: Bool) throws {
    let row = row()
    row.membershipsMS = now.wallMS - ageMS
    let session = try session([member(orgA)], choice: orgA)
    let found = try situation(row: row, session: session, policy: #""offline_limit_s":100"#)
    expect(found.membership, equals: (counts ? .active : .unasked))
    expect(found.window != .pastLimit)
  }

  @Test func withoutASessionNothingWasAsked() throws {
    try expect(situation(session: nil).membership, equals: .unasked)
  }
}
