import Base
import TestSupport
import Testing

@testable import Store

@Suite struct DurableEventTableTests {
  let folder: TemporaryFolder
  let table: DurableEventTable

  init() throws {
    folder = try TemporaryFolder()
    table = DurableEventTable(try folder.open())
  }

  private func all(for owner: [UInt8]?, limit: Int = 99) throws -> [Int64] {
    try table.page(for: owner, after: EventCursor(), limit: limit, size: 99).events.map { $0.0 }
  }

  /// Events 1 to 4, of no owner, owner 1, owner 2 and owner 1, stored out of order.
  private func fill() throws {
    try table.add(4, owner: tag(1), sealed: [4])
    try table.add(1, owner: nil, sealed: [1])
    try table.add(3, owner: tag(2), sealed: [3])
    try table.add(2, owner: tag(1), sealed: [2])
  }

  @Test func anOwnerGetsHisEventsAndThoseOfNobodyInOrder() throws {
    try fill()
    try expect(all(for: tag(1)), equals: [1, 2, 4])
    try expect(all(for: tag(2)), equals: [1, 3])
    try expect(all(for: nil), equals: [1])
    try expect(all(for: tag(1), limit: 2), equals: [1, 2])
    let page = try table.page(for: tag(2), after: EventCursor(), limit: 9, size: 99)
    expect(page.events.map { $0.1 }, equals: [[1], [3]])
    expect(page.next, equals: nil)
  }

  @Test(
    arguments: [
      (0, 0, 9, 9, [1, 2, 4], nil), (0, 0, 2, 9, [1, 2], 4), (0, 0, 9, 2, [1, 2], 4),
      (0, 0, 0, 9, [1], 2), (0, 0, 9, 0, [1], 2), (1, 0, 9, 9, [2, 4], nil),
      (0, 2, 9, 9, [1, 4], nil), (4, 2, 9, 9, [4], nil), (4, 4, 9, 9, [], nil),
    ] as [(Int64, Int64, Int, Int, [Int64], Int64?)])
  func aPageEndsAtItsLimitAndItsSizeAndNamesTheNextEvent(
    common: Int64, own: Int64, limit: Int, size: Int, expected: [Int64], next: Int64?
  ) throws {
    try fill()
    let cursor = EventCursor(common: common, own: own)
    let page = try table.page(for: tag(1), after: cursor, limit: limit, size: size)
    expect(page.events.map { $0.0 }, equals: expected)
    expect(page.next, equals: next)
    try expect(table.hasAny(for: tag(1), after: cursor), equals: !expected.isEmpty)
  }

  @Test func withoutAnOwnerOnlyEventsOfNobodyAreFound() throws {
    try fill()
    try expect(table.hasAny(for: nil, after: EventCursor()))
    try expect(!table.hasAny(for: nil, after: EventCursor(common: 1, own: 0)))
  }

  @Test(
    arguments: [
      (Int64(0), [Int64(1), 2, 4], [Int64(1), 3]), (1, [2, 4], [3]), (3, [4], [3]), (9, [], [3]),
    ] as [(Int64, [Int64], [Int64])])
  func anAcknowledgementRemovesTheOwnersEventsUpToItsNumber(
    upTo: Int64, ours: [Int64], others: [Int64]
  ) throws {
    try fill()
    try table.acknowledge(upTo: upTo, for: tag(1), within: EventCursor(common: 9, own: 9))
    try expect(all(for: tag(1)), equals: ours)
    try expect(all(for: tag(2)), equals: others)
  }

  @Test func withoutAnOwnerOnlyEventsOfNobodyAreAcknowledged() throws {
    try fill()
    try table.acknowledge(upTo: 9, for: nil, within: EventCursor(common: 9, own: 9))
    try expect(all(for: tag(1)), equals: [2, 4])
    try expect(all(for: tag(2)), equals: [3])
  }

  @Test(
    arguments: [
      (0, 0, [1, 2, 4]), (1, 0, [2, 4]), (0, 2, [1, 4]), (9, 3, [4]),
    ] as [(Int64, Int64, [Int64])])
  func anAcknowledgementReachesNoFurtherThanItsCursor(
    common: Int64, own: Int64, left: [Int64]
  ) throws {
    try fill()
    try table.acknowledge(
      upTo: 9, for: tag(1), within: EventCursor(common: common, own: own))
    try expect(all(for: tag(1)), equals: left)
  }

  @Test func aNumberIsUsedOnce() throws {
    try fill()
    #expect(throws: Failure.self) { try table.add(4, owner: nil, sealed: []) }
  }
}
