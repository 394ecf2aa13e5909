import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct ItemIntakeTests {
  private static let kinds =
    #","queue":{"call":{"table":"calls","columns":["note","occurred_at"]},"#
    + #""letter":{"table":"letters","columns":["note","occurred_at"]}}"#

  private func add(_ rig: Rig, _ number: Int, _ kind: StaticCString) throws {
    _ = try rig.intake.add([
      "kind": JSON(kind), "id": .uuid(id(number)), "payload": ["note": "n"],
    ])
  }

  // MARK: Cancelling

  @Test func anItemThatTheServerMayHaveIsMarkedAsCancelledAndTakenBack() throws {
    // Given an item that was sent, and waits for its organisation
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let request: JSON = ["id": .uuid(id(1))]
    try rig.core.queue.transition(
      try #require(try rig.row(id(1))).sequence, .waiting(.organisation), charged: true)
    // When
    let reply = try rig.intake.cancel(request)
    // Then
    let item = try rig.report.get(request)["item"]
    expect(reply.string("state"), equals: item?.string("state"))
    expect(reply.int("released"), equals: 0)
    let key = try rig.session.queueKey
    try expect(rig.row(id(1))?.read(key)?.isCancelled, equals: true)
    // And the user takes it back
    try expect(rig.intake.retry(request).int("retried"), equals: 1)
    try expect(rig.row(id(1))?.read(key)?.isCancelled, equals: false)
  }

  // MARK: Batches

  @Test func kindsWithTheSameColumnsShareNoRequest() throws {
    // Given items of two tables, by turns
    let rig = try Rig.atHome(backend: Self.kinds)
    try add(rig, 1, "call")
    try add(rig, 2, "letter")
    try add(rig, 3, "call")
    try add(rig, 4, "call")
    try add(rig, 5, "letter")
    // When
    let first = try rig.upload()
    let second = try rig.upload()
    // Then
    expect(first.kind.table, equals: "calls")
    expect(first.items.map { $0.id }, equals: [id(1), id(3), id(4)])
    expect(second.kind.table, equals: "letters")
    expect(second.items.map { $0.id }, equals: [id(2), id(5)])
  }

  // MARK: Edits

  /// What the server has under the id of an item that was edited before it was ever sent.
  @Test(arguments: [(45, "erased"), (30, "parked, conflict")])
  func anEditBeforeTheFirstUploadLeavesANewItem(_ minutes: Int, _ state: String) throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1), minutes: 30)
    _ = try rig.intake.edit([
      "id": .uuid(id(1)), "payload": ["type": "visit", "minutes": 45],
    ])
    let batch = try rig.upload()
    // When the upload stores nothing, since the row is there
    try rig.settlement.finish(batch, isCurrent: true, try response(201, "[]"), rig.now)
    let question = try #require(rig.uploads.readBacks.first)
    expect(question.request == .rows)
    try rig.settlement.finish(
      question, isCurrent: true,
      try response(
        200, #"[{"id":"\#(id(1).text)","type":"visit","minutes":\#(minutes)}]"#), rig.now)
    // Then the rows are compared: no older version of the item can be there
    try expect(rig.state(id(1)), equals: state)
  }

  // MARK: Reports

  @Test func aWaitForATimeIsExplained() throws {
    // Given
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.core.queue.transition(
      try #require(try rig.row(id(1))).sequence,
      .waiting(.time(until: try rig.core.steadyToStore(rig.now) + 5000)))
    // When
    let reasons = try rig.report.explain([:])["reasons"]?.elements ?? []
    // Then
    expect(reasons.map { $0.string("code") }, equals: ["back_off"])
    expect(reasons.map { $0.int("count") }, equals: [1])
    expect(reasons.map { $0.int("until_ms") }, equals: [rig.now.wallMS + 5000])
  }
}
