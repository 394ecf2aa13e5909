import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

/// Corrections in the queue: what is sent, and what an answer makes of them.
@Suite struct CorrectionQueueTests {
  private static let seen: JSON = ["type": "visit", "minutes": 30]

  private func edit(_ rig: Rig, _ number: Int, _ minutes: Int64) throws {
    _ = try rig.intake.edit([
      "id": .uuid(id(number)), "payload": ["type": "visit", "minutes": .int(minutes)],
    ])
  }

  private func finish(_ rig: Rig, _ batch: UploadBatch, _ status: Int, _ body: String? = nil) throws
  {
    try rig.settlement.finish(batch, isCurrent: true, try response(status, body), rig.now)
  }

  /// Answer the next question.
  private func answer(_ rig: Rig, _ status: Int, _ body: String? = nil) throws {
    let question = try #require(rig.uploads.readBacks.first)
    rig.uploads.readBacks.removeFirst()
    try finish(rig, question, status, body)
  }

  private func row(_ number: Int, _ minutes: Int, _ version: String = "v1", more: String = "")
    -> String
  {
    #"{"id":"\#(id(number).text)","type":"visit","minutes":\#(minutes),"updated_at":"\#(version)","deleted_at":null\#(more)}"#
  }

  private func result(_ number: Int, _ status: String, _ more: String = "") -> String {
    #"{"id":"\#(id(number).text)","status":"\#(status)"\#(more)}"#
  }

  // MARK: Edits while a request is on its way

  /// The refusal of what was sent says nothing about what the user has set since.
  @Test(arguments: [
    (400, #"{"code":"22P02","message":"m"}"#), (413, #"{"code":"PT413","message":"m"}"#),
    (400, #"{"code":"23514","message":"m","details":"minutes"}"#),
  ])
  func anEditOfWhatIsRefusedIsSent(_ status: Int, _ body: String) throws {
    // Given
    let rig = try Rig.atHome(backend: corrected())
    try rig.add(id(1), minutes: 30)
    let batch = try rig.upload()
    try edit(rig, 1, 90)
    // When
    try finish(rig, batch, status, body)
    // Then
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    let next = try rig.upload()
    expect(next.items[0].content?.payload.int("minutes"), equals: 90)
    // And the refusal of this one is about it
    try finish(rig, next, status, body)
    try expect(rig.state(id(1)).hasPrefix("parked"))
  }

  @Test func anEditOfAChangeThatIsRefusedIsSent() throws {
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, ["minutes": -1], of: Self.seen)
    let batch = try rig.upload()
    try edit(rig, 1, 90)
    try finish(rig, batch, 400, #"{"code":"22P02","message":"m"}"#)
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    try expect(rig.item(id(1))?.payload.int("minutes"), equals: 90)
  }

  /// The request with the other value may be on its way yet.
  @Test func aChangeThatIsTakenBackInFlightIsSentUntilItIsProved() throws {
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    let batch = try rig.upload()
    try edit(rig, 1, 30)
    try finish(rig, batch, 200, "[]")
    try answer(rig, 200, "[\(row(1, 30))]")
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    try expect(rig.item(id(1))?.payload.int("minutes"), equals: 30)
    try finish(rig, try rig.upload(), 200, "[\(row(1, 30, "v2"))]")
    try expect(rig.state(id(1)), equals: "erased")
  }

  // MARK: The base

  /// Once the change is made to another version of the row, no earlier request can change it.
  @Test func valuesOfVoidRequestsAreNoLongerMine() throws {
    // Given a change whose answer is lost, that is edited, and another column that others have changed
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    let batch = try rig.upload()
    try edit(rig, 1, 90)
    try finish(rig, batch, 200, "[]")
    try answer(rig, 200, "[\(row(1, 30, "v2").replacing("visit", with: "call"))]")
    try expect(rig.state(id(1)), equals: "pending, attempts 1")
    // When somebody sets the very value that this user has given up
    try finish(rig, try rig.upload(), 200, "[]")
    try answer(rig, 200, "[\(row(1, 60, "v3"))]")
    // Then it is theirs
    try expect(rig.state(id(1)), equals: "parked, changed_elsewhere, attempts 1")
  }

  @Test func aRowThatOthersChangeAllTheTimeIsNoLoop() throws {
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    var requests = 0
    while try rig.state(id(1)).hasPrefix("pending"), requests < 20 {
      requests += 1
      try finish(rig, try rig.upload(), 200, "[]")
      try answer(rig, 200, "[\(row(1, 30, "v\(requests + 1)"))]")
    }
    expect(requests, equals: 9)
    try expect(rig.state(id(1)), equals: "waits for time, attempts 9, alone 1, group 2")
  }

  /// The same of a function that says that a row was stored before.
  @Test func theVersionOfADuplicateIsNotThatOfWhatWasSent() throws {
    let rig = try Rig.atHome(
      backend: corrected(
        #","upload":"rpc","function":"submit","own":{},"change":{},"delete":"deleted_at""#))
    try rig.add(id(1), minutes: 30)
    try finish(rig, try rig.upload(), 503)
    try rig.core.pauses.clear("upload")
    let batch = try rig.upload()
    try edit(rig, 1, 90)
    try finish(rig, batch, 200, "[\(result(1, "duplicate", #","updated_at":"v2""#))]")
    try expect(rig.item(id(1))?.operation == .change)
    try expect(rig.item(id(1))?.stored?.version, equals: nil)
  }

  // MARK: Changes and deletions in one question

  /// As for inserts: the items are one group of which halves are sent.
  @Test func correctionsThatAreRefusedOnTheWayAreSearchedTogether() throws {
    let rig = try Rig.atHome(backend: byFunction)
    for number in 1...4 { try rig.correct(number, ["minutes": 60], of: Self.seen) }
    try finish(rig, try rig.upload(), 403, "<html>")
    try answer(rig, 200, "[\((1...4).map { row($0, 30) }.joined(separator: ","))]")
    try expect(
      (1...4).map { try rig.state(id($0)) },
      equals: Array(repeating: "pending, attempts 1, group 1", count: 4))
    expect(rig.uploads.size.items, equals: 125)
  }

  // MARK: A pull meanwhile

  /// A column that cannot be changed may be given as the last pull has brought it, and as nothing else.
  @Test func anEditIsCheckedAgainstTheRowAsItWasPulled() throws {
    let members = #","own":{},"change":{"columns":["minutes"]},"delete":"deleted_at""#
    let rig = try Rig.atHome(backend: corrected(members))
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    let kind = try #require(rig.core.configuration.backend.kind("activity"))
    let pulled = OwnRow(id: id(1), values: ["type": "walk", "minutes": 30], version: "v2")
    try rig.ownRows.put([pulled], kind, orgA, rig.session, areInserts: false, rig.now)
    let refusal = #expect(throws: Failure.self) { try edit(rig, 1, 61) }
    expect(refusal?.field, equals: "/payload/type")
    _ = try rig.intake.edit(["id": .uuid(id(1)), "payload": ["type": "walk", "minutes": 61]])
    let payload = try #require(try rig.item(id(1))).payload
    expect(payload == ["minutes": 61])
  }

  // MARK: A function

  /// One response is one failure, however many rows it names.
  @Test(arguments: ["40001", "57014", "53300"])
  func rowsThatPassLaterAreOneFailure(_ code: String) throws {
    let rig = try Rig.atHome(backend: byFunction)
    for number in 1...5 { try rig.correct(number, ["minutes": 60], of: Self.seen) }
    let results = (1...5).map { result($0, "rejected", #","sqlstate":"\#(code)""#) }
    try finish(rig, try rig.upload(), 200, "[\(results.joined(separator: ","))]")
    try expect(rig.core.pauses.read("upload").attempts <= 1)
    for number in 1...5 { try expect(rig.row(id(number))?.attempts, equals: 1) }
  }

  /// A function of the project may leave a column out: then the row is read.
  @Test func aRowWithoutTheChangedColumnIsRead() throws {
    let rig = try Rig.atHome(backend: byFunction)
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    try finish(
      rig, try rig.upload(), 200,
      "[\(result(1, "changed", #","row":{"type":"call"},"updated_at":"v2""#))]")
    expect(rig.uploads.readBacks.map { $0.request == .rows }, equals: [true])
    try answer(rig, 200, "[\(row(1, 45, "v2"))]")
    try expect(rig.state(id(1)), equals: "parked, changed_elsewhere")
  }

  // MARK: Other versions of the app

  /// What a function answers is no proof because it names the id.
  @Test func aVersionWithAFunctionReadsItsResult() throws {
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    let next = try rig.next(backend: byFunction)
    try finish(
      next, try next.upload(), 200, "[\(result(1, "changed", #","row":\#(row(1, 45, "v2"))"#))]")
    try expect(next.state(id(1)), equals: "parked, changed_elsewhere")
  }

  @Test(arguments: [
    (false, "", "waits for kind"), (true, "", "waits for kind"),
    (true, #","own":{},"change":{}"#, "waits for kind"), (false, #","own":{}"#, "sending"),
  ])
  func aCorrectionWaitsForAVersionThatCanMakeIt(
    _ isDeletion: Bool, _ members: String, _ expected: String
  ) throws {
    // Given
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, isDeletion ? nil : ["minutes": 60], of: Self.seen)
    // When
    let next = try rig.next(backend: corrected(members))
    try next.uploader.send(try next.session, next.now)
    // Then
    try expect(next.state(id(1)), equals: expected)
    if expected == "sending" { return }
    expect(next.inFlight.requests.isEmpty)
    try expect(!next.uploader.hasHeldKinds(try next.session))
    // And a version that can makes it.
    let last = try next.next(backend: corrected())
    try expect(last.uploader.hasHeldKinds(try last.session))
    try last.uploader.releaseKnownKinds(try last.session)
    try expect(last.upload().items.map { $0.id }, equals: [id(1)])
  }

  /// Changes and deletions share requests.
  @Test func whatAVersionCannotDeleteHoldsUpNoChange() throws {
    let rig = try Rig.atHome(backend: byFunction)
    try rig.correct(1, nil, of: Self.seen)
    try rig.correct(2, ["minutes": 60], of: Self.seen)
    let next = try rig.next(backend: corrected(#","own":{},"change":{"function":"change_items"}"#))
    try expect(next.upload().items.map { $0.id }, equals: [id(2)])
    try expect(next.state(id(1)), equals: "waits for kind")
  }

  @Test func aColumnThatIsNoLongerKeptIsComparedAllTheSame() throws {
    let rig = try Rig.atHome(backend: corrected())
    try rig.correct(1, ["minutes": 60], of: Self.seen)
    let next = try rig.next(backend: corrected(#","own":{"columns":["type"]},"change":{}"#))
    try finish(next, try next.upload(), 200, "[]")
    let question = try #require(next.uploads.readBacks.first)
    expect(next.settlement.columns(of: question).contains("minutes"))
    try answer(next, 200, "[\(row(1, 45, "v2"))]")
    try expect(next.state(id(1)), equals: "parked, changed_elsewhere")
  }

  /// Nobody knows which values the server has: what was sent is known only where changes can be made.
  @Test func anItemThatWasRevisedBeforeItCouldBeChangedIsShown() throws {
    // Given an item whose answer was lost, and that was edited
    let rig = try Rig.atHome(backend: corrected(""))
    try rig.add(id(1), minutes: 30)
    try finish(rig, try rig.upload(), 503)
    try edit(rig, 1, 90)
    // When another version finds it stored
    let next = try rig.next(backend: corrected())
    try next.core.pauses.clear("upload")
    try finish(next, try next.upload(), 201, "[]")
    try answer(next, 200, "[\(row(1, 30, "v1"))]")
    // Then
    try expect(next.state(id(1)), equals: "parked, unknown_outcome, attempts 1")
  }
}
