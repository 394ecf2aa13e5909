import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct UploadSettlementTests {
  // MARK: The table

  /// A response to an upload of `items` items, and everything that follows from it.
  struct Case: CustomTestStringConvertible {
    let items: Int
    let status: Int
    let body: String?
    /// The states of the items afterwards.
    let states: [String]
    /// The purposes that pause.
    var pauses: [Purpose] = []
    /// How many items the server is asked about.
    var readBack = 0
    var events: [String] = []
    /// The membership check is asked.
    var asksMembership = false
    /// The access token is refreshed.
    var refreshes = false
    /// The cached data counts as stale.
    var isFailing = false
    /// The cache is pulled again.
    var pulls = false
    /// How many fresh items the next batch may have.
    var batch = 500

    var testDescription: String { "\(items) items, \(status) \(body ?? "")" }
  }

  private static func code(_ code: String) -> String { #"{"code":"\#(code)","message":"m"}"# }
  /// Refusals for what an item's user gave, and for what nobody gave (`BlamePolicy`).
  private static let taken =
    #"{"code":"23505","message":"a unique constraint \"activities_type_key\""}"#
  private static let orphaned =
    #"{"code":"23503","message":"on table \"activities\", a constraint \"activities_type_fkey\""}"#
  private static let unnamed = ["21000", "23000", "23502", "23503", "23505", "23P01", "44000"]
  private static let pending4 = [String](repeating: "pending", count: 4)
  private static let halves = [
    "pending, group 2", "pending, group 2", "pending, group 4", "pending, group 4",
  ]
  /// The server may have stored them.
  private static let doubtedHalves = halves.map {
    $0.replacing("pending", with: "pending, attempts 1")
  }
  private static let guilty = Array(repeating: "pending, group 1", count: 4)
  private static let two = ["pending, group 1", "pending, group 1"]
  private static let retried = "pending, attempts 1"
  private static let suspended = "waits for time, attempts 1"
  private static let denied = "waits for organisation, refused, group 2"

  private static let cases: [Case] = [
    // Stored, or asked about.
    Case(
      items: 1, status: 201, body: rows(id(1)), states: ["erased"],
      events: ["sync_completed"], pulls: true),
    Case(
      items: 4, status: 201, body: rows(id(1), id(2), id(3), id(4)),
      states: [String](repeating: "erased", count: 4),
      events: ["sync_completed"], pulls: true),
    Case(
      items: 4, status: 201, body: rows(id(2), id(4)),
      states: ["sending", "erased", "sending", "erased"], readBack: 2,
      events: ["sync"], pulls: true),
    Case(items: 1, status: 201, body: "[]", states: ["sending"], readBack: 1),
    // The ids of others prove nothing.
    Case(items: 1, status: 201, body: rows(id(9)), states: ["sending"], readBack: 1),
    // A success that names no ids is a portal's.
    Case(
      items: 1, status: 200, body: "<html>", states: [retried], pauses: [.upload], isFailing: true),
    Case(
      items: 1, status: 201, body: #"[{"key":1}]"#, states: [retried], pauses: [.upload],
      isFailing: true),
    // One without a body is asked about.
    Case(items: 1, status: 204, body: nil, states: ["sending"], readBack: 1),
    Case(items: 1, status: 201, body: "", states: ["sending"], readBack: 1),
    // An item is at fault.
    Case(
      items: 1, status: 400, body: code("22P02"), states: ["parked, invalid_value, attempts 1"],
      events: ["item_parked", "sync_completed"]),
    Case(items: 4, status: 400, body: code("22P02"), states: guilty, batch: 125),
    // A key is taken.
    Case(items: 1, status: 409, body: taken, states: ["sending"], readBack: 1),
    Case(items: 2, status: 409, body: taken, states: two, batch: 125),
    Case(items: 4, status: 409, body: taken, states: guilty, batch: 125),
    // A parent is missing and not queued.
    Case(
      items: 1, status: 409, body: orphaned, states: ["parked, missing_parent, attempts 1"],
      events: ["item_parked", "sync_completed"]),
    Case(items: 2, status: 409, body: orphaned, states: two, batch: 125),
    Case(items: 4, status: 409, body: orphaned, states: guilty, batch: 125),
    // Denied.
    Case(items: 1, status: 403, body: code("42501"), states: [denied], asksMembership: true),
    Case(
      items: 4, status: 403, body: code("42501"),
      states: [denied, denied, denied, denied], asksMembership: true),
    // The token.
    Case(items: 1, status: 401, body: code("PGRST301"), states: ["pending"], refreshes: true),
    Case(items: 4, status: 401, body: code("42501"), states: pending4, refreshes: true),
    // Too large.
    Case(
      items: 1, status: 413, body: code("PT413"), states: ["parked, too_long, attempts 1"],
      events: ["item_parked", "sync_completed"]),
    Case(items: 4, status: 413, body: code("PT413"), states: halves),
    // A gateway says so of an item that is small: it refuses it for something else.
    Case(items: 1, status: 413, body: nil, states: ["sending"], readBack: 1),
    Case(items: 4, status: 413, body: nil, states: halves),
    // Nobody gave what is refused: the batch key waits.
    Case(items: 1, status: 409, body: code("23503"), states: [suspended]),
    Case(
      items: 4, status: 409, body: code("23503"),
      states: [suspended, suspended, suspended, suspended]),
    Case(
      items: 4, status: 409, body: code("23505"),
      states: [suspended, suspended, suspended, suspended]),
    // The statement took too long.
    Case(items: 1, status: 500, body: code("57014"), states: [suspended]),
    Case(items: 4, status: 500, body: code("57014"), states: doubtedHalves),
    // The table takes nothing.
    Case(items: 1, status: 404, body: code("42P01"), states: [suspended]),
    Case(
      items: 4, status: 500, body: code("42P17"),
      states: [suspended, suspended, suspended, suspended]),
    Case(
      items: 4, status: 400, body: code("ZZ999"),
      states: [suspended, suspended, suspended, suspended]),
    // Refused on the way: the service is asked for the items.
    Case(items: 1, status: 403, body: "<html>", states: ["sending"], readBack: 1),
    Case(
      items: 4, status: 403, body: code("access_denied"),
      states: ["sending", "sending", "sending", "sending"], readBack: 4),
    // It passes.
    Case(items: 1, status: 0, body: nil, states: [retried], pauses: [.upload], isFailing: true),
    Case(items: 1, status: 503, body: nil, states: [retried], pauses: [.upload], isFailing: true),
    Case(
      items: 4, status: 503, body: code("PGRST002"),
      states: [retried, retried, retried, retried], pauses: [.upload], isFailing: true),
    Case(
      items: 1, status: 416, body: code("PGRST103"), states: [retried], pauses: [.upload],
      isFailing: true),
  ]

  @Test(arguments: cases)
  func aResponseDecidesEverything(_ expected: Case) throws {
    // Given
    let rig = try Rig.atHome()
    rig.pulls.forgetAll()
    for number in 1...expected.items { try rig.add(id(number)) }
    let batch = try rig.upload()
    expect(batch.items.count, equals: expected.items)
    // When
    try rig.settlement.finish(
      batch, isCurrent: true, try response(expected.status, expected.body), rig.now)
    // Then
    try expect((1...expected.items).map { try rig.state(id($0)) }, equals: expected.states)
    try expect(
      Purpose.allCases.filter { try rig.pauses.leftMS($0, rig.now) > 0 }, equals: expected.pauses)
    expect(rig.uploads.readBacks.map { $0.items.count }.reduce(0, +), equals: expected.readBack)
    try expect(rig.takeEventTypes().sorted(), equals: expected.events)
    expect(rig.check.isNeeded, equals: expected.asksMembership)
    expect(rig.check.isConfirmed, equals: !expected.asksMembership)
    expect(rig.tokens.isRefused, equals: expected.refreshes)
    expect(rig.reachability.isFailing, equals: expected.isFailing)
    expect(rig.pulls.needsContacts, equals: expected.pulls)
    expect(rig.uploads.size.items, equals: expected.batch)
  }

  // MARK: Another session

  /// A response to a request of an earlier session proves nothing about the current one.
  @Test(arguments: [
    (201, "[]", "pending, attempts 1"), (403, code("42501"), "pending"),
    (401, code("PGRST301"), "pending"),
    (409, code("23505"), "pending, attempts 1"), (201, rows(id(1)), "erased"),
    (400, code("22P02"), "parked, invalid_value, attempts 1"),
  ])
  func aLateResponseSettlesItemsAndNothingElse(
    _ status: Int, _ body: String, _ state: String
  ) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let batch = try rig.upload()
    try rig.signIn(bob)
    rig.check.confirm()
    // When
    try rig.settlement.finish(batch, isCurrent: false, try response(status, body), rig.now)
    // Then
    try expect(rig.state(id(1), of: alice), equals: state)
    expect(rig.uploads.readBacks.isEmpty)
    expect(rig.check.isConfirmed)
    expect(!rig.tokens.isRefused)
  }

  @Test func anotherUsersNoticesWaitForThatUser() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let batch = try rig.upload()
    try rig.signIn(bob)
    _ = try rig.takeEvents()
    try rig.settlement.finish(
      batch, isCurrent: false, try response(400, Self.code("22P02")), rig.now)
    try expect(rig.takeEventTypes(), equals: ["sync"])
    try rig.signIn(alice)
    try expect(rig.takeEventTypes(), equals: ["item_parked"])
  }

  @Test func itemsThatAnotherProcessTookOverAreLeftAlone() throws {
    // Given a batch of two, of which one is no longer leased
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    let batch = try rig.upload()
    try rig.core.queue.transition(batch.items[0].sequence, .pending())
    // When
    try rig.settlement.finish(batch, isCurrent: true, try response(503), rig.now)
    // Then
    try expect(rig.state(id(1)), equals: "pending")
    try expect(rig.state(id(2)), equals: "pending, attempts 1")
  }

  // MARK: Denials

  /// The second denial: whether the membership was confirmed since, in which organisations, and what
  /// becomes of the item.
  @Test(arguments: [
    (true, [member(orgA)], "waits for time, attempts 1, refused, group 2"),
    (false, [member(orgA)], "waits for organisation, refused, group 4"),
    (true, [member(orgB)], "waits for organisation, refused, group 4"),
  ])
  func anItemThatIsDeniedAgainWaitsForThePolicyOnlyWithAConfirmedMembership(
    _ isConfirmed: Bool, _ list: [String], _ state: String
  ) throws {
    // Given an item that was denied once and released
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(403, Self.code("42501")), rig.now)
    try rig.list(member(orgA))
    try expect(rig.state(id(1)), equals: "pending, refused, group 2")
    let batch = try rig.upload()
    try rig.list(list[0])
    if !isConfirmed { rig.check.ask(.discardingAnswer, rig.now) }
    // When
    try rig.settlement.finish(
      batch, isCurrent: true, try response(403, Self.code("42501")), rig.now)
    // Then
    try expect(rig.state(id(1)), equals: state)
  }

  // MARK: Parents

  @Test func anItemWaitsForAParentThatIsQueued() throws {
    // Given a visit to a contact that became queued after the visit
    let rig = try Rig.atHome()
    _ = try rig.intake.add([
      "kind": "activity", "id": .uuid(id(1)),
      "payload": ["type": "visit", "contact_id": .uuid(id(2))],
    ])
    let batch = try rig.upload()
    try rig.add(id(2), kind: "contact")
    // When
    try rig.settlement.finish(
      batch, isCurrent: true, try response(409, Self.code("23503")), rig.now)
    // Then
    try expect(rig.state(id(1)), equals: "waits for parent")
    // And it is free when the parent is stored
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, rows(id(2))), rig.now)
    try expect(rig.state(id(1)), equals: "pending")
  }

  @Test func aRunEndsWithAnItemThatWaitsForAParkedParent() throws {
    // Given a visit to a contact that was queued after it, and parked
    let rig = try Rig.atHome()
    _ = try rig.intake.add([
      "kind": "activity", "id": .uuid(id(1)),
      "payload": ["type": "visit", "contact_id": .uuid(id(2))],
    ])
    let batch = try rig.upload()
    try rig.add(id(2), kind: "contact")
    try rig.core.queue.transition(
      try #require(try rig.row(id(2))).sequence, .parked(rejection: nil))
    let owner = try rig.session.owner
    try expect(rig.core.syncRuns.find(of: owner) != nil)
    // When
    try rig.settlement.finish(
      batch, isCurrent: true, try response(409, Self.code("23503")), rig.now)
    // Then
    try expect(rig.state(id(1)), equals: "waits for parent")
    try expect(rig.core.syncRuns.find(of: owner) == nil)
  }

  @Test func aStoredItemIsKnownToThoseThatFollowIt() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, rows(id(1))), rig.now)
    try expect(rig.add(id(2), dependsOn: [id(1)]), equals: "pending")
    try expect(refusal { try rig.add(id(3), dependsOn: [id(9)]) }, equals: .queueUnknownDependency)
  }

  // MARK: A function's rows

  private static let rpc = #","queue":{"activity":{"table":"activities","upload":"rpc"}}"#

  private func result(_ number: Int, _ status: String, _ sqlstate: String? = nil) -> String {
    #"{"id":"\#(id(number).text)","status":"\#(status)""#
      + (sqlstate.map { #","sqlstate":"\#($0)""# } ?? "") + "}"
  }

  @Test func everyRowOfAFunctionIsSettledByItsOwnResult() throws {
    // Given
    let rig = try Rig.atHome(backend: Self.rpc)
    for number in 1...7 { try rig.add(id(number)) }
    let batch = try rig.upload()
    let body = [
      result(1, "stored"), result(2, "duplicate"), result(3, "conflict"),
      result(4, "rejected", "22P02"), result(5, "rejected", "42501"), result(6, "rejected"),
      result(99, "stored"),
    ].joined(separator: ",")
    // When
    try rig.settlement.finish(batch, isCurrent: true, try response(200, "[\(body)]"), rig.now)
    // Then; the seventh has no result, which proves nothing, and the row of the second may be another
    // item's, because it was not sent before. The first, of the same organisation, shows that the membership
    // goes on, so the fifth is denied for itself
    try expect(
      (1...7).map { try rig.state(id($0)) },
      equals: [
        "erased", "sending", "parked, conflict, attempts 1", "parked, invalid_value, attempts 1",
        "parked, rejected, attempts 1", "parked, rejected, attempts 1",
        "waits for time, attempts 1, alone 1, group 4",
      ])
    expect(rig.uploads.readBacks.map { $0.items.map { $0.id } }, equals: [[id(2)]])
    expect(rig.uploads.readBacks.allSatisfy { $0.request == .rows })
    try expect(rig.pauses.leftMS(.upload, rig.now) <= 0)
    expect(!rig.check.isNeeded)
  }

  @Test func aFunctionThatGivesNoRowsIsTriedAgain() throws {
    let rig = try Rig.atHome(backend: Self.rpc)
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(200, #"{"ok":true}"#), rig.now)
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0)
  }

  /// The first denied row discards the membership's confirmation. A row that was denied before and
  /// comes after it is held as well; before it, its kind waits.
  @Test(arguments: [
    ([2, 1], "waits for organisation, refused, group 6"),
    ([1, 2], "waits for time, attempts 1, refused"),
  ])
  func theMembershipIsAskedPerDeniedRow(_ order: [Int], _ state: String) throws {
    // Given item 1, denied before, and item 2, both sent
    let rig = try Rig.atHome(backend: Self.rpc)
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true,
      try response(200, "[\(result(1, "rejected", "42501"))]"), rig.now)
    try rig.list(member(orgA))
    try rig.core.queue.assign(try #require(try rig.row(id(1))).sequence, retryGroup: 0)
    try rig.add(id(2))
    let batch = try rig.upload()
    expect(batch.items.count, equals: 2)
    // When
    let body = order.map { result($0, "rejected", "42501") }.joined(separator: ",")
    try rig.settlement.finish(batch, isCurrent: true, try response(200, "[\(body)]"), rig.now)
    // Then
    try expect(rig.state(id(1)), equals: state)
    try expect(rig.state(id(2)), equals: "waits for organisation, refused, group 4")
    expect(!rig.check.isConfirmed)
  }

  @Test func aRowOfAFunctionWaitsForItsQueuedParent() throws {
    let rig = try Rig.atHome(backend: Self.rpc)
    try rig.add(id(1))
    try rig.add(id(2), dependsOn: [id(1)])
    try rig.core.queue.transition(try #require(try rig.row(id(2))).sequence, .pending())
    let batch = try rig.upload()
    expect(batch.items.count, equals: 2)
    try rig.settlement.finish(
      batch, isCurrent: true,
      try response(200, "[\(result(1, "rejected", "22P02")),\(result(2, "rejected", "23503"))]"),
      rig.now)
    try expect(rig.state(id(2)), equals: "waits for parent")
  }

  /// The results of two rows, the state of the second one, and whether uploads pause.
  @Test(arguments: [
    // Others are decided: the row waits for itself.
    ("stored", nil, "40001", "waits for time, attempts 1", false),
    ("stored", nil, "ZZ999", "waits for time, attempts 1", false),
    ("rejected", "22P02", "XX000", "waits for time, attempts 1", false),
    // None is decided: as for a table.
    ("rejected", "40001", "40001", "pending, attempts 1", true),
    ("rejected", "53300", "ZZ999", "pending, attempts 1", true),
    ("rejected", "ZZ999", "ZZ999", "waits for time, attempts 1", false),
    ("rejected", "my_code", "42883", "waits for time, attempts 1", false),
  ])
  func aRowWithACodeThatBlamesNoItemIsNotParked(
    _ status: String, _ first: String?, _ second: String, _ state: String, _ pauses: Bool
  ) throws {
    let rig = try Rig.atHome(backend: Self.rpc)
    for number in 1...2 { try rig.add(id(number)) }
    let body = "[\(result(1, status, first)),\(result(2, "rejected", second))]"
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(200, body), rig.now)
    try expect(rig.state(id(2)), equals: state)
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0, equals: pauses)
  }

  /// An answer after a failure, and whether the next upload is still a probe.
  @Test(arguments: [
    (200, "<html>", true), (200, #"{"ok":true}"#, true), (200, "[]", true),
    (200, #"[{"id":"\#(id(9).text)","status":"stored"}]"#, true),
    (200, #"[{"id":"\#(id(1).text)","status":"rejected","sqlstate":"40001"}]"#, true),
    (200, #"[{"id":"\#(id(1).text)","status":"stored"}]"#, false),
    (200, #"[{"id":"\#(id(1).text)","status":"rejected","sqlstate":"22P02"}]"#, false),
  ])
  func anAnswerThatCannotBeUsedIsNoSuccess(
    _ status: Int, _ body: String, _ isProbing: Bool
  ) throws {
    // Given an upload that failed, whose pause has ended
    let rig = try Rig.atHome(backend: Self.rpc)
    try rig.add(id(1))
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(503), rig.now)
    try rig.pauses.endUnasked { _ in true }
    try expect(rig.pauses.isProbing(.upload))
    // When
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(status, body), rig.now)
    // Then
    try expect(rig.pauses.isProbing(.upload), equals: isProbing)
  }

  /// A refusal that shows that the service works, though it stores nothing.
  @Test(arguments: [
    (404, code("PGRST205")), (500, code("57014")), (400, code("22P02")), (201, "[]"),
    (500, code("XX000")),
  ])
  func aServiceThatJudgesIsProbedNoMore(_ status: Int, _ body: String) throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(503), rig.now)
    try rig.pauses.endUnasked { _ in true }
    try expect(rig.pauses.isProbing(.upload))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(status, body), rig.now)
    try expect(!rig.pauses.isProbing(.upload))
  }

  // MARK: Refused on the way

  /// The response to the read-back of an upload that a firewall or a portal refused, the states of the
  /// items, and whether uploads pause. TST_4: where the answer was refused, perhaps not the upload, items
  /// are charged.
  @Test(arguments: [
    (1, 200, "[]", ["waits, blocked, attempts 1, alone 8, group 2"], false),
    (1, 200, rows(id(1)), ["erased"], false),
    (1, 403, code("42501"), ["waits, blocked, attempts 1, alone 8, group 2"], false),
    (1, 401, code("PGRST301"), ["pending, attempts 1"], false),
    (2, 401, code("PGRST301"), ["pending, attempts 1", "pending, attempts 1"], false),
    (1, 403, "<html>", ["pending, attempts 1"], true),
    (1, 503, code("PGRST001"), ["pending, attempts 1"], true),
    (2, 200, "[]", ["pending, group 1", "pending, group 1"], false),
    (2, 200, rows(id(2)), ["sending", "erased"], false),
    (2, 403, "<html>", ["pending, attempts 1", "pending, attempts 1"], true),
  ])
  func theServicesAnswerTellsWhetherTheItemsAreRefused(
    _ items: Int, _ status: Int, _ body: String, _ states: [String], _ pauses: Bool
  ) throws {
    // Given
    let rig = try Rig.atHome()
    for number in 1...items { try rig.add(id(number)) }
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(403, "<html>"), rig.now)
    var batch = try #require(rig.uploads.readBacks.first)
    try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
    // When
    try rig.settlement.finish(
      batch, isCurrent: true, try response(status, body), rig.now)
    // The user may not read every column: asked again for the ids only.
    if let again = rig.uploads.readBacks.first, again.items.count == batch.items.count {
      batch = again
      try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
      try rig.settlement.finish(
        batch, isCurrent: true, try response(status, body), rig.now)
    }
    // Then
    try expect((1...items).map { try rig.state(id($0)) }, equals: states)
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0, equals: pauses)
  }

  @Test(
    "TST_4: an item whose question is answered to an earlier session is charged",
    arguments: [UploadSituation.Request.ids, .rows, .control],
    [
      (200, "[]"), (401, code("PGRST301")), (403, code("42501")), (400, code("42703")),
      (403, "<html>"), (503, "<html>"),
    ])
  func anAnswerToAnEarlierSessionChargesTheItems(
    _ question: UploadSituation.Request, _ answer: (Int, String)
  ) throws {
    // Given an item that the server may have stored, and a question about it
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[]"), rig.now)
    let batch = try #require(rig.uploads.readBacks.first).asking(question)
    try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
    // When the session has changed meanwhile
    try rig.settlement.finish(
      batch, isCurrent: false, try response(answer.0, answer.1), rig.now)
    // Then a later edit knows that it was sent
    try expect(rig.state(id(1)).hasPrefix("pending, attempts 1"))
  }

  @Test func aPortalEndsAllReadBacksOfTheUpload() throws {
    let rig = try Rig.atHome()
    for number in 1...101 { try rig.add(id(number)) }
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(403, "<html>"), rig.now)
    expect(rig.uploads.readBacks.count, equals: 2)
    // The first question, and one about an id that nobody has
    for question in [UploadSituation.Request.rows, .control] {
      let batch = try #require(rig.uploads.readBacks.first)
      expect(batch.request, equals: question)
      try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
      try rig.settlement.finish(
        batch, isCurrent: true, try response(403, "<html>"), rig.now)
    }
    expect(rig.uploads.readBacks.isEmpty)
    try expect(rig.state(id(101)), equals: "pending, attempts 1")
  }

  @Test func newItemsThatAreRefusedInARowMakeUploadsBackOff() throws {
    let rig = try Rig.atHome()
    for number in 1...4 {
      try rig.add(id(number))
      try rig.settlement.finish(
        try rig.upload(), isCurrent: true, try response(403, "<html>"), rig.now)
      let batch = try #require(rig.uploads.readBacks.first)
      try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
      try rig.settlement.finish(
        batch, isCurrent: true, try response(200, "[]"), rig.now)
      try expect(rig.pauses.leftMS(.upload, rig.now) > 0, equals: (number == 4))
    }
  }

  /// Refuse the next upload on the way, and let the service name none of its items.
  private func block(_ rig: Rig) throws {
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(403, "<html>"), rig.now)
    while let batch = rig.uploads.readBacks.first {
      try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
      try rig.settlement.finish(batch, isCurrent: true, try response(200, "[]"), rig.now)
    }
  }

  /// How often the item has failed alone, and what becomes of it at the next refusal.
  @Test(arguments: [
    (Int64(12), "waits, blocked, attempts 1, alone 13"),
    (13, "parked, blocked, attempts 1, alone 13"),
  ])
  func besideOthersAnItemIsParkedAtTheSeventhRefusal(_ count: Int64, _ state: String) throws {
    // Given a service that judges others
    let rig = try Rig.atHome()
    try rig.add(id(1))
    _ = rig.uploads.noteStored(try rig.sample(), group: 0, rig.now)
    try rig.fail(id(1), alone: count)
    // When
    try block(rig)
    // Then
    try expect(rig.state(id(1)), equals: state)
  }

  @Test func aTryThatTheUserAskedForEarlyDoesNotCount() throws {
    // Given an item that was refused on the way
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try block(rig)
    try expect(rig.row(id(1))?.trouble, equals: 8)
    // When the user tries again before the end of its pause
    _ = try rig.intake.retry(["id": .uuid(id(1))])
    try block(rig)
    // Then that does not count
    try expect(rig.row(id(1))?.trouble, equals: 8)
    // But one after it does
    rig.advance(450_000)
    try rig.core.queue.promote(
      of: try rig.session.owner, now: try rig.core.steady(rig.now), longest: .backoffs)
    try block(rig)
    try expect(rig.row(id(1))?.trouble, equals: 9)
  }

  // MARK: Read-backs

  /// Sends one item, gets no id for it, and returns the read-back.
  private func readBack(_ rig: Rig, _ status: Int = 201, _ body: String = "[]") throws
    -> UploadBatch
  {
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(status, body), rig.now)
    let batch = try #require(rig.uploads.readBacks.first)
    try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
    expect(rig.uploads.readBacks.isEmpty)
    return batch
  }

  /// The response to a read-back, whether the membership is confirmed, whether the session is the
  /// same, the item's state, and whether uploads pause.
  @Test(arguments: [
    (200, rows(id(1)), true, true, "erased", false),
    (200, rows(id(1)), false, false, "erased", false),
    // The memberships are checked before an item is parked: one that has ended hides the row.
    (200, "[]", true, true, "waits for organisation, attempts 1, refused, group 2", false),
    (200, "[]", false, true, "waits for organisation, attempts 1, refused, group 2", false),
    (200, "[]", true, false, "pending, attempts 1", false),
    (401, code("PGRST301"), true, true, "pending, attempts 1", false),
    // It goes behind all others, which tell whether uploads get through.
    (503, "", true, true, "pending, attempts 1, group 2", true),
    // Only a success tells what the server has.
    (503, "[]", true, true, "pending, attempts 1, group 2", true),
    (503, rows(id(1)), true, true, "pending, attempts 1, group 2", true),
    (200, "<html>", true, true, "pending, attempts 1, group 2", true),
  ])
  func aReadBackProvesWhatTheServerHas(
    _ status: Int, _ body: String, _ isConfirmed: Bool, _ isCurrent: Bool, _ state: String,
    _ pauses: Bool
  ) throws {
    // Given
    let rig = try Rig.atHome()
    let batch = try readBack(rig)
    if !isConfirmed { rig.check.reset() }
    // When
    try rig.settlement.finish(
      batch, isCurrent: isCurrent, try response(status, body), rig.now)
    if let control = rig.uploads.readBacks.first {
      try rig.settlement.finish(
        control, isCurrent: isCurrent, try response(status, body), rig.now)
    }
    // Then
    try expect(rig.state(id(1)), equals: state)
    expect(rig.tokens.isRefused, equals: (status == 401))
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0, equals: pauses)
  }

  /// The answer to a question about an id that nobody has, after a firewall refused the one about the
  /// item, and what becomes of the item.
  @Test(arguments: [
    (200, "[]", true, "waits, blocked, attempts 1, alone 8, group 2", false),
    (403, code("42501"), true, "waits, blocked, attempts 1, alone 8, group 2", false),
    (403, "<html>", true, "pending, attempts 1, group 2", true),
    (200, "{}", true, "pending, attempts 1, group 2", true),
    (503, "", true, "pending, attempts 1, group 2", true),
    (200, "[]", false, "pending, attempts 1", false),
  ])
  func theAnswerAboutAnIDThatNobodyHasTellsWhetherTheWayIsOpen(
    _ status: Int, _ body: String, _ isCurrent: Bool, _ state: String, _ pauses: Bool
  ) throws {
    // Given a question about an item that something on the way refuses
    let rig = try Rig.atHome()
    try rig.settlement.finish(
      try readBack(rig), isCurrent: true, try response(403, "<html>"), rig.now)
    let control = try #require(rig.uploads.readBacks.first)
    expect(control.request, equals: .control)
    try expect(rig.state(id(1)), equals: "sending")
    // When
    try rig.uploader.sendReadBack(control, try rig.session, rig.now)
    let asked = try #require(rig.inFlight.last(rig.now)?.string("url"))
    expect(!asked.contains(id(1).text))
    try rig.settlement.finish(
      control, isCurrent: isCurrent, try response(status, body), rig.now)
    // Then
    try expect(rig.state(id(1)), equals: state)
    expect(rig.uploads.readBacks.isEmpty)
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0, equals: pauses)
  }

  @Test func whoMayNotReadEveryColumnIsAskedForTheIDsAlone() throws {
    let rig = try Rig.atHome()
    let batch = try readBack(rig)
    expect(batch.request == .rows)
    try rig.settlement.finish(
      batch, isCurrent: true, try response(403, Self.code("42501")), rig.now)
    expect(rig.uploads.readBacks.map { $0.request == .rows }, equals: [false])
    try expect(rig.state(id(1)), equals: "sending")
    try expect(rig.pauses.leftMS(.upload, rig.now) <= 0)
  }

  @Test func onlyTheRowOfAnItemThatWasNotSentBeforeIsCompared() throws {
    // Given an item that was sent once, and a new one
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(0), rig.now)
    try rig.pauses.endUnasked { _ in true }
    try rig.pauses.succeed(.upload)
    try rig.add(id(2))
    let batch = try rig.upload()
    expect(batch.items.count, equals: 2)
    // When the server names neither
    try rig.settlement.finish(batch, isCurrent: true, try response(201, "[]"), rig.now)
    // Then
    expect(
      rig.uploads.readBacks.map {
        ($0.request == .rows ? "compares " : "asks ") + $0.items[0].id.text
      },
      equals: ["asks \(id(1).text)", "compares \(id(2).text)"])
  }

  /// What the server answered to the upload, and why the item is parked when it has no row twice.
  @Test(arguments: [(201, "[]", "conflict"), (409, taken, "duplicate")])
  func anItemThatTheServerLacksIsParkedOnceTheMembershipIsConfirmedAnew(
    _ status: Int, _ body: String, _ reason: String
  ) throws {
    // Given an item that the server refused or did not name, and a first read-back without its row
    let rig = try Rig.atHome()
    let first = try readBack(rig, status, body)
    try rig.settlement.finish(first, isCurrent: true, try response(200, "[]"), rig.now)
    try expect(rig.state(id(1)), equals: "waits for organisation, attempts 1, refused, group 2")
    // When the membership is confirmed, and the same happens again
    try rig.list(member(orgA))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(status, body), rig.now)
    let second = try #require(rig.uploads.readBacks.first)
    try rig.uploader.sendReadBack(second, try rig.session, rig.now)
    try rig.settlement.finish(second, isCurrent: true, try response(200, "[]"), rig.now)
    // Then
    try expect(rig.state(id(1)).hasPrefix("parked, \(reason), "))
  }

  @Test(
    "TST_5: what depends on an item, in each way, is free when the server says that it lacks the item",
    arguments: ["depends_on", "contact_id"], [true, false])
  func aCancelThatTheServerConfirmsReleasesWhatDependsOnTheItem(
    _ link: String, _ isBlocked: Bool
  ) throws {
    // Given an item that was sent once and is cancelled, and another one that depends on it
    let rig = try Rig.atHome()
    try rig.add(id(1), kind: "contact")
    if link == "depends_on" {
      try rig.add(id(2), dependsOn: [id(1)])
    } else {
      _ = try rig.intake.add([
        "kind": "activity", "id": .uuid(id(2)),
        "payload": ["type": "visit", "contact_id": .uuid(id(1))],
      ])
    }
    try expect(rig.state(id(2)), equals: "waits for parent")
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(0), rig.now)
    _ = try rig.intake.cancel(["id": .uuid(id(1))])
    try rig.pauses.endUnasked { _ in true }
    // When the server does not have it, or something on the way refused the first question
    try rig.uploader.send(try rig.session, rig.now)
    let batch = try #require(rig.uploads.readBacks.first)
    try rig.uploader.sendReadBack(batch, try rig.session, rig.now)
    if isBlocked {
      try rig.settlement.finish(
        batch, isCurrent: true, try response(503, "<html>"), rig.now)
      try rig.pauses.endUnasked { _ in true }
      try rig.uploader.send(try rig.session, rig.now)
      rig.uploads.removeFirstReadBack()
    }
    try rig.settlement.finish(batch, isCurrent: true, try response(200, "[]"), rig.now)
    if try rig.state(id(1)) != "erased" {
      try rig.list(member(orgA))
      try rig.uploader.send(try rig.session, rig.now)
      let again = try #require(rig.uploads.readBacks.first)
      try rig.uploader.sendReadBack(again, try rig.session, rig.now)
      try rig.settlement.finish(again, isCurrent: true, try response(200, "[]"), rig.now)
    }
    // Then
    try expect(rig.state(id(1)), equals: "erased")
    try expect(rig.state(id(2)), equals: "pending")
  }

  @Test func theRowOfAnEditedItemMayBeTheOldOne() throws {
    // Given an item that was sent once, then edited
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(0), rig.now)
    _ = try rig.intake.edit(["id": .uuid(id(1)), "payload": ["type": "call"]])
    // When the server has the id already
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[]"), rig.now)
    let batch = try #require(rig.uploads.readBacks.first)
    try rig.settlement.finish(
      batch, isCurrent: true, try response(200, rows(id(1))), rig.now)
    // Then only the user can tell
    try expect(rig.state(id(1)), equals: "parked, unknown_outcome, attempts 2")
  }

  @Test func readBacksNameAtMost100Items() throws {
    let rig = try Rig.atHome()
    for number in 1...101 { try rig.add(id(number)) }
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[]"), rig.now)
    expect(rig.uploads.readBacks.map { $0.items.count }, equals: [100, 1])
  }

  // MARK: Notices

  @Test func aParkedItemsNoticeNamesItemReasonAndField() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let body = #"{"code":"23502","message":"null value in column \"minutes\" of relation \"a\""}"#
    try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(400, body), rig.now)
    let event = try #require(try rig.takeEvents().first { $0.string("type") == "item_parked" })
    expect(event.uuid("id"), equals: id(1))
    expect(event.string("reason"), equals: "missing_value")
    expect(event.string("text")?.isEmpty, equals: false)
    expect(event.string("field"), equals: "minutes")
  }
}
