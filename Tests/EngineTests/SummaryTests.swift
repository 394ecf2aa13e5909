import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct SummaryTests {
  private static let figures =
    #"{"activities":10,"minutes":300,"since":"2026-11-01T00:00:00Z"}"#

  private func pull(_ rig: Rig, _ body: String = figures, status: Int = 200) throws {
    try rig.summaryPuller.finish(
      orgA, uploads: try rig.core.meta.int(.uploads) ?? 0, try response(status, body), rig.now)
  }

  /// The server's activities, those sent since, and those queued.
  private func numbers(_ rig: Rig) throws -> [Int64?] {
    let reply = try rig.summary.get([:], rig.decider, rig.presenter)
    return [
      reply["summary"]?.int("activities"), reply["sent"]?.int("activities"),
      reply["queued"]?.int("activities"),
    ]
  }

  private func send(_ rig: Rig, _ numbers: Int...) throws {
    let ids = numbers.map { #"{"id":"\#(id($0).text)"}"# }.joined(separator: ",")
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, "[\(ids)]"), rig.now)
  }

  @Test func aLateUploadOfAnotherUserIsNotCounted() throws {
    // Given Alice's upload, and Bob, who signed in meanwhile
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let batch = try rig.upload()
    try rig.signIn(bob)
    try rig.list(member(orgA))
    try expect(rig.orgSelection.choose(orgA, rig.session))
    try pull(rig)
    // When
    try rig.settlement.finish(batch, isCurrent: false, try response(201, rows(id(1))), rig.now)
    // Then
    try expect(rig.state(id(1), of: alice), equals: "erased")
    try expect(numbers(rig), equals: [10, 0, 0])
  }

  @Test func anItemIsCountedOnceOnItsWayToTheServer() throws {
    // Given figures
    let rig = try Rig.atHome()
    try pull(rig)
    try expect(numbers(rig), equals: [10, 0, 0])
    // When, then: queued, being sent, sent, in the next figures
    try rig.add(id(1), minutes: 45)
    try expect(numbers(rig), equals: [10, 0, 1])
    let batch = try rig.upload()
    try expect(numbers(rig), equals: [10, 0, 1])
    try rig.settlement.finish(batch, isCurrent: true, try response(201, rows(id(1))), rig.now)
    try expect(numbers(rig), equals: [10, 1, 0])
    let reply = try rig.summary.get([:], rig.decider, rig.presenter)
    expect(reply["sent"]?.int("minutes"), equals: 45)
    try pull(rig, #"{"activities":11,"minutes":345}"#)
    try expect(numbers(rig), equals: [11, 0, 0])
  }

  @Test func figuresReadWhileAnUploadWasUnderWayAreDropped() throws {
    // Given a request for figures, and an upload that began since
    let rig = try Rig.atHome()
    try pull(rig)
    try rig.add(id(1))
    let before = try rig.core.meta.int(.uploads) ?? 0
    rig.pulls.requirePull()
    try send(rig, 1)
    _ = try rig.takeEvents()
    // When
    try rig.summaryPuller.finish(
      orgA, uploads: before, try response(200, #"{"activities":11}"#), rig.now)
    // Then the item is counted as sent alone, and the figures are asked for again
    try expect(numbers(rig), equals: [10, 1, 0])
    expect(rig.pulls.needsSummary)
    try expect(rig.takeEvents().isEmpty)
  }

  @Test func aParkedItemAndOnesBeforeThePeriodAreNotCounted() throws {
    let rig = try Rig.atHome()
    try pull(rig)
    try rig.add(id(1))
    try rig.core.queue.transition(
      try #require(try rig.row(id(1))).sequence, .parked(rejection: nil))
    _ = try rig.intake.add([
      "kind": "activity", "id": .uuid(id(2)), "payload": ["type": "visit"],
      "occurred_at_ms": 1_700_000_000_000,
    ])
    try rig.add(id(3), kind: "contact")
    try rig.add(id(4), org: orgB)
    try expect(numbers(rig), equals: [10, 0, 0])
  }

  @Test func sentItemsBeforeThePeriodAreNotCounted() throws {
    let rig = try Rig.atHome()
    try pull(rig)
    _ = try rig.intake.add([
      "kind": "activity", "id": .uuid(id(2)), "payload": ["type": "visit"],
      "occurred_at_ms": 1_700_000_000_000,
    ])
    try send(rig, 2)
    try expect(numbers(rig), equals: [10, 0, 0])
  }

  @Test func withoutFiguresNothingIsCountedAsSent() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try send(rig, 1)
    try expect(numbers(rig), equals: [nil, 0, 0])
    try pull(rig)
    try expect(numbers(rig), equals: [10, 0, 0])
  }

  @Test func itemsOfAnotherUserAreNotCounted() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let batch = try rig.upload()
    try rig.signIn(bob)
    try rig.list(member(orgA))
    try expect(rig.orgSelection.choose(orgA, rig.session))
    try pull(rig)
    try rig.settlement.finish(batch, isCurrent: false, try response(201, rows(id(1))), rig.now)
    try expect(numbers(rig), equals: [10, 0, 0])
  }

  @Test func aReplySaysHowOldTheFiguresAreAndWhatIsUnsent() throws {
    // Given
    let rig = try Rig.atHome()
    try pull(rig)
    try rig.add(id(1))
    rig.advance(1000)
    // When
    let reply = try rig.summary.get([:], rig.decider, rig.presenter)
    // Then
    expect(reply.int("as_of_ms"), equals: rig.now.wallMS - 1000)
    expect(
      reply["banners"]?.elements.compactMap { $0.string("code") }, equals: ["queued_not_sent"])
  }

  /// The body of a response, and whether it is taken for figures.
  @Test(arguments: [
    (200, figures, true), (200, "[\(figures)]", true), (200, "[]", false), (200, "<html>", false),
    (200, "[1]", false), (503, figures, false),
  ])
  func figuresAreAnObjectOrTheFirstOfAList(_ status: Int, _ body: String, _ isTaken: Bool) throws {
    let rig = try Rig.atHome()
    try pull(rig, body, status: status)
    try expect(numbers(rig), equals: [isTaken ? 10 : nil, 0, 0])
    expect(rig.pulls.needsSummary, equals: !isTaken)
    try expect(
      Purpose.allCases.filter { try rig.pauses.leftMS($0, rig.now) > 0 },
      equals: (isTaken ? [] : [.summary]))
  }

  @Test func minutesAreClampedToWhatSomebodyRegisters() throws {
    let rig = try Rig.atHome()
    let backend = rig.core.configuration.backend
    func minutes(_ number: Int64, _ kind: String = "activity") -> Int64? {
      Counted(
        QueueItem(
          id: id(1), kind: kind, org: orgA, payload: ["minutes": .int(number)], dependsOn: [],
          occurredAtMS: nil), backend)?.added?.minutes
    }
    expect(minutes(30), equals: 30)
    expect(minutes(-5), equals: 0)
    expect(minutes(9_000_000), equals: 1_000_000)
    expect(minutes(30, "contact"), equals: nil)
  }

  @Test func aChangeCountsItsDifferenceAndADeletionTakesAway() throws {
    let rig = try Rig.atHome()
    func figures(_ payload: JSON, isDeleted: Bool, since: Int64? = nil) -> [Int64] {
      let item = QueueItem(
        id: id(1), kind: "activity", org: orgA, payload: payload, dependsOn: [], occurredAtMS: nil)
      item.stored = StoredBase(
        row: ["minutes": 30, "occurred_at": "2026-01-02T00:00:00Z"], version: "v1",
        isDeleted: isDeleted)
      var figures = Figures()
      if let counted = Counted(item, rig.core.configuration.backend) {
        figures.add(counted, since: since)
      }
      return [figures.activities, figures.minutes]
    }
    expect(figures(["minutes": 90], isDeleted: false), equals: [0, 60])
    expect(figures([:], isDeleted: true), equals: [-1, -30])
    // A visit that moves out of the period is taken away.
    let since = try #require(ISO8601.parse("2026-01-01T00:00:00Z"))
    let moved: JSON = ["occurred_at": "2025-12-31T00:00:00Z"]
    expect(figures(moved, isDeleted: false, since: since), equals: [-1, -30])
    expect(figures(["minutes": 90], isDeleted: false, since: since + 172_800_000), equals: [0, 0])
  }
}
