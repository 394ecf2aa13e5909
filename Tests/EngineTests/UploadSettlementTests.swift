import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct UploadSettlementTests {
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
      items: 1, status: 400, body: code("22P02"), states: ["parked, invalid_value"],
      events: ["item_parked", "sync_completed"]),
    Case(items: 4, status: 400, body: code("22P02"), states: guilty, batch: 125),
    // A key is taken.
    Case(items: 1, status: 409, body: taken, states: ["sending"], readBack: 1),
    Case(items: 2, status: 409, body: taken, states: two, batch: 125),
    Case(items: 4, status: 409, body: taken, states: guilty, batch: 125),
    // A parent is missing and not queued.
    Case(
      items: 1, status: 409, body: orphaned, states: ["parked, missing_parent"],
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
      items: 1, status: 413, body: code("PT413"), states: ["parked, too_long"],
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

  // MARK: A function's rows

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
    (13, "parked, blocked, alone 13"),
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

  // MARK: Read-backs

  /// Sends one item, gets no id for it, and returns the read-back.
  private func readBack(_ rig: Rig) throws -> UploadBatch {
    try rig.add(id(1))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[]"), rig.now)
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
}
