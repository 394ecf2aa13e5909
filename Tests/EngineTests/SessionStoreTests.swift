import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct SessionStoreTests {
  // MARK: Reset

  /// What memory holds for a session, each as `remains` looks it up.
  enum Held: CaseIterable {
    case mirror, index, refusal, tokenEnd, validation, pendingSignIn, liveContacts, contactAnswer
    case screen, membershipCheck, requests, readBacks, pullProgress, pullTimes, cachedRows
    case cacheConnection, keys
  }

  /// What ends with each scope; all else stays.
  private static let ends: [(scope: SessionStore.Scope, ended: Set<Held>)] = [
    (.mirror, [.mirror, .index, .refusal]),
    (
      .user,
      [.liveContacts, .contactAnswer, .membershipCheck, .pullProgress, .pullTimes]
    ),
    (.organisation, [.index, .pullProgress, .liveContacts, .contactAnswer]),
    (
      .session,
      [
        .mirror, .index, .tokenEnd, .liveContacts, .contactAnswer, .membershipCheck,
      ]
    ),
    (
      .keylessFiles,
      [
        .mirror, .index, .tokenEnd, .liveContacts, .contactAnswer, .membershipCheck,
        .cacheConnection, .requests, .keys,
      ]
    ),
    (.damagedFile, [.mirror, .index, .requests, .readBacks, .keys]),
    (.file, [.mirror, .index, .requests, .readBacks, .keys]),
  ]

  @Test(arguments: 0..<7)
  func aResetEndsWhatItsScopeSaysAndNothingElse(_ number: Int) throws {
    // Given memory that holds everything
    let rig = try Rig.atHome()
    let connection = try hold(everythingIn: rig)
    try expect(remains(in: rig, connection), equals: Set(Held.allCases))
    // When
    let (scope, ended) = Self.ends[number]
    rig.sessions.reset(scope)
    // Then
    try expect(remains(in: rig, connection), equals: Set(Held.allCases).subtracting(ended))
  }

  @Test(arguments: ["proved", "logged out", "unreadable"])
  func everyEndErasesBothKeysAndWhatTheyOpen(_ how: String) throws {
    // Given
    let rig = try Rig.atHome()
    let connection = try hold(everythingIn: rig)
    // When
    switch how {
    case "proved": try rig.end(.banned)
    case "logged out": try rig.sessions.end(.loggedOut)
    default: try rig.sessions.end(.unreadable(generation: rig.sessions.row().generation))
    }
    // Then
    try expect(
      remains(in: rig, connection),
      equals: [
        .refusal, .validation, .pendingSignIn, .screen, .requests, .readBacks, .cacheConnection,
        .keys,
      ])
    expect(Set(rig.keyStore.keys.keys), equals: [.device])
  }

  private func hold(everythingIn rig: Rig) throws -> CacheTables {
    let session = try rig.session
    try rig.signIn()
    rig.tokens.refuse()
    rig.tokens.requireValidation()
    // The token's end by the monotonic clock differs from that by the device's.
    rig.advance(0, wallMS: 10_000)
    rig.pendingSignIn.begin(
      PendingSignIn(
        .password(email: "a", password: "b"), over: try rig.sessions.row(),
        deadlineMS: rig.now.monotonicMS + 1000))
    _ = rig.live.add(id(1), in: orgA, rig.now)
    try rig.news.answer("contact_get", ["contact": ["name": "Kari"]])
    rig.news.show(["screen": "home"], rig.now)
    rig.check.ask(.discardingAnswer, rig.now)
    let tables = try rig.cache.open()
    try tables.contacts.add(
      number: 1, row: [1], org: [1], version: "1", round: 0, sealed: [1])
    let kind = try #require(rig.core.configuration.backend.kind("activity"))
    rig.uploads.add(
      readBack: UploadBatch(
        owner: session.owner, key: [1], org: orgA, kind: kind, columns: [], items: []))
    rig.pulls.begin(RowPull(contacts(orgA), after: nil))
    rig.pulls.finishSummary(1)
    rig.cache.use(ContactIndex(org: [1], version: nil))
    try rig.inFlight.send(
      RestRequests.summary(
        rig.core.configuration.backend, org: orgA, bearer: session.accessToken),
      .validate, generation: 1, rig.now)
    return tables
  }

  private func remains(in rig: Rig, _ connection: CacheTables) throws -> Set<Held> {
    var result: Set<Held> = []
    func note(_ held: Held, _ isThere: Bool) { if isThere { result.insert(held) } }
    let row = SessionRow()
    row.expiresMS = try rig.sessions.row().expiresMS
    note(.mirror, rig.sessions.session != nil)
    note(.index, rig.cache.index != nil)
    note(.refusal, rig.tokens.isRefused)
    note(
      .tokenEnd,
      try rig.tokens.lifeLeftMS(row, rig.now) != row.expiresMS - rig.core.serverMS(rig.now))
    note(.validation, rig.tokens.needsValidation)
    note(.pendingSignIn, rig.pendingSignIn.pending != nil)
    note(.liveContacts, rig.live.next != nil)
    note(.contactAnswer, try showsContact(rig))
    note(.screen, rig.news.screen != nil)
    note(.membershipCheck, rig.check.isNeeded)
    note(.requests, !rig.inFlight.requests.isEmpty)
    note(.readBacks, !rig.uploads.readBacks.isEmpty)
    note(.pullProgress, rig.pulls.current != nil)
    note(.pullTimes, rig.pulls.summaryMS != nil)
    note(.keys, rig.core.keyRing.keys != nil)
    note(.cacheConnection, connection.database.isOpen)
    note(.cachedRows, try rig.cache.open().contacts.find(row: [1], in: [1]) != nil)
    return result
  }

  /// Whether the answer still has its contact; without one it says why, and is not lost.
  private func showsContact(_ rig: Rig) throws -> Bool {
    let event = try #require(rig.news.answer)
    if event["contact"]?.isNull == false { return true }
    expect(event["message"]?.string("code"), equals: "contact_withdrawn")
    return false
  }

  // MARK: The row

  @Test func aPatchKeepsTheGeneration() throws {
    let rig = try Rig()
    try rig.sessions.patch { $0.membershipsMS = 1 }
    try rig.sessions.patch(ifGeneration: 0) { $0.intentMS = 5 }
    let row = try rig.sessions.row()
    expect(row.generation, equals: 0)
    expect(row.membershipsMS, equals: 1)
    expect(row.intentMS, equals: 5)
  }

  @Test func clearingKeepsTheQueueAndTheGenerationsOrder() throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let generation = try rig.sessions.row().generation
    // When
    try rig.end(.banned)
    // Then
    let row = try rig.sessions.row()
    expect(row.generation, equals: generation + 1)
    expect(row.owner == nil && row.tokens == nil && row.wrapSession == nil)
    expect(row.ended, equals: "user_banned")
    try expect(rig.state(id(1)), equals: "pending")
    expect(rig.sessions.session == nil)
  }

  // MARK: The mirror

  @Test func theMirrorFollowsTheRow() throws {
    // Given two processes on one folder
    let rig = try Rig.atHome()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.core.keyRing.state(for: other.core.database)
    // When the other one reads the row
    expect(other.sessions.record(try other.sessions.row()), equals: nil)
    try expect(other.sessions.reload(try other.sessions.row()), equals: .open)
    // Then both have the same session
    try expect(other.session.choice, equals: orgA)
    try expect(other.session.memberships, equals: rig.session.memberships)
    // When the other one locks
    try other.lock.lock(.user)
    // Then this one's mirror is out of date until it is reloaded
    let row = try rig.sessions.row()
    expect(rig.sessions.record(row), equals: nil)
    try expect(rig.sessions.reload(row), equals: .sealed)
    expect(rig.sessions.record(row), equals: .sealed)
    expect(rig.sessions.session == nil)
  }

  @Test func anotherUsersSessionEndsWhatWasHeldForThisOne() throws {
    // Given
    let rig = try Rig.atHome()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    try rig.news.answer("contact_get", ["contact": ["name": "Kari"]])
    // When
    try other.signIn(bob)
    _ = try rig.sessions.reload(try rig.sessions.row())
    // Then
    try expect(rig.session.userID, equals: bob)
    try expect(!showsContact(rig))
    expect(!rig.check.isConfirmed)
  }

  @Test func theSameUsersNewerSessionKeepsWhatWasHeld() throws {
    let rig = try Rig.atHome()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    try rig.news.answer("contact_get", ["contact": ["name": "Kari"]])
    try other.signIn(alice)
    _ = try rig.sessions.reload(try rig.sessions.row())
    try expect(showsContact(rig))
    expect(rig.check.isConfirmed)
  }

  @Test func aRowThatDoesNotOpenIsCorruptUntilItChanges() throws {
    // Given
    let rig = try Rig.atHome()
    _ = try rig.sessions.update(ifGeneration: try rig.sessions.row().generation) {
      $0.tokens = [1, 2, 3]
    }
    let row = try rig.sessions.row()
    expect(rig.sessions.record(row), equals: nil)
    // When
    try expect(rig.sessions.reload(row), equals: .corrupt)
    // Then it is known without opening it again
    expect(rig.sessions.record(row), equals: .corrupt)
    row.generation += 1
    expect(rig.sessions.record(row), equals: nil)
  }

  @Test func aRowWithoutAUserIsMissingOrEnded() throws {
    let rig = try Rig()
    let row = SessionRow()
    expect(rig.sessions.record(row), equals: .missing)
    row.ended = "user_banned"
    expect(rig.sessions.record(row), equals: .ended)
    try expect(rig.sessions.reload(row), equals: .ended)
  }

  @Test func withoutKeysARowIsSealed() throws {
    let rig = try Rig.atHome()
    rig.sessions.reset(.file)
    try expect(rig.sessions.reload(try rig.sessions.row()), equals: .sealed)
  }

  @Test func newMembershipsAreReadUnderTheSameGeneration() throws {
    let rig = try Rig.atHome()
    let generation = try rig.session.generation
    try rig.list(member(orgA, role: "org_admin"))
    try expect(rig.session.generation, equals: generation)
    try expect(rig.session.chosen?.role, equals: "org_admin")
  }
}
