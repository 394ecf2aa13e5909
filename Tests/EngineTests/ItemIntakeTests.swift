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

  @Test func anItemHasAtMost256Kilobytes() throws {
    // Given an item whose text is as long as it may be
    let rig = try Rig.atHome(backend: Self.kinds)
    func add(_ number: Int, noteLength: Int) throws -> String? {
      try rig.intake.add([
        "kind": "call", "id": .uuid(id(number)),
        "payload": ["note": .string(String(repeating: "n", count: noteLength))],
      ]).string("state")
    }
    _ = try add(1, noteLength: 0)
    let size = try #require(try rig.row(id(1))).size
    let most = Int(262_144 - size)
    // When, then
    try expect(add(2, noteLength: most), equals: "pending")
    try expect(rig.row(id(2))?.size, equals: 262_144)
    try expect(refusal { try add(3, noteLength: most + 1) }, equals: .queueItemTooLarge)
  }

  @Test func anItemOfTheFirstVersionIsTheSameItem() throws {
    // Given an item that does not say whether its row has a user
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let row = try #require(try rig.row(id(1)))
    let key = try rig.session.queueKey
    let item = try #require(try row.read(key))
    item.hasUser = nil
    (row.body, row.size) = try item.sealed(row.item, row.owner, key)
    try rig.core.queue.write(row)
    // When, then
    try expect(rig.add(id(1)), equals: "pending")
    try expect(refusal { try rig.add(id(1), minutes: 31) }, equals: .queueIDTaken)
  }

  @Test func aNumberThatIsNotExactIsNamedWhereverItStands() throws {
    let rig = try Rig.atHome()
    let failure = #expect(throws: Failure.self) {
      try rig.intake.add([
        "kind": "activity", "payload": ["type": ["a/b": [1, ["n": 9_007_199_254_740_993]]]],
      ])
    }
    expect(failure?.code, equals: .queueInvalidPayload)
    expect(failure?.field, equals: "/payload/type/a~1b/1/n")
  }

  // MARK: Cancelling

  @Test func anItemThatTheServerMayHaveIsMarkedAsCancelledAndTakenBack() throws {
    // Given an item that was sent, and waits for its organisation
    let rig = try Rig.atHome()
    try rig.add(id(1))
    let request: JSON = ["id": .uuid(id(1))]
    try rig.core.queue.transition(
      try #require(try rig.row(id(1))).sequence, .waiting(.organisation, charged: true))
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

  // MARK: The time of an item

  /// The time in the payload, and the one that the row has. 2026-11-18T08:53:20 is near the rig's.
  @Test(arguments: [
    (nil as String?, "2026-11-18T08:53:20.000Z"),
    ("2026-01-01T10:00:00+01:00", "2026-01-01T10:00:00+01:00"),
  ])
  func aTimeInThePayloadIsTheHostsOwn(_ own: String?, _ expected: String) throws {
    let rig = try Rig.atHome(backend: Self.kinds)
    let payload: JSON = ["note": "n"]
    if let own { payload.set("occurred_at", .string(own)) }
    _ = try rig.intake.add([
      "kind": "call", "id": .uuid(id(1)), "payload": payload, "occurred_at_ms": 1_794_992_000_000,
    ])
    let item = try rig.report.get(["id": .uuid(id(1))])["item"]
    expect(item?["payload"]?.string("occurred_at"), equals: expected)
    expect(item?.int("occurred_at_ms"), equals: 1_794_992_000_000)
  }

  @Test func anEditedItemKeepsItsTime() throws {
    let rig = try Rig.atHome(backend: Self.kinds)
    _ = try rig.intake.add([
      "kind": "call", "id": .uuid(id(1)), "payload": ["note": "n"],
      "occurred_at_ms": 1_794_992_000_000,
    ])
    _ = try rig.intake.edit(["id": .uuid(id(1)), "payload": ["note": "m"]])
    let payload = try rig.report.get(["id": .uuid(id(1))])["item"]?["payload"]
    expect(payload?.string("note"), equals: "m")
    expect(payload?.string("occurred_at"), equals: "2026-11-18T08:53:20.000Z")
  }

  // MARK: Edits

  /// What the server has under the id of an item that was edited before it was ever sent.
  @Test(arguments: [(45, "erased"), (30, "parked, conflict, attempts 1")])
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

  @Test func beforeTheFirstPullNoRowWasSkipped() throws {
    let rig = try Rig.atHome()
    let contacts = try #require(try rig.sync.status([:])["contacts"])
    expect(contacts.int("skipped"), equals: 0)
    expect(contacts["as_of_ms"]?.isNull, equals: true)
    expect(contacts["problem"]?.isNull, equals: true)
  }
}
