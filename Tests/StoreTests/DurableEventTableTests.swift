import Base
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
    try table.all(for: owner, limit: limit).map { $0.0 }
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
    #expect(try all(for: tag(1)) == [1, 2, 4])
    #expect(try all(for: tag(2)) == [1, 3])
    #expect(try all(for: nil) == [1])
    #expect(try all(for: tag(1), limit: 2) == [1, 2])
    #expect(try table.all(for: tag(2), limit: 9).map { $0.1 } == [[1], [3]])
  }

  @Test func theNewestIsOfTheOwnerOrOfNobody() throws {
    #expect(try table.newest(for: tag(1)) == 0)
    try fill()
    #expect(try table.newest(for: tag(1)) == 4)
    #expect(try table.newest(for: tag(2)) == 3)
    #expect(try table.newest(for: nil) == 1)
  }

  @Test(
    arguments: [
      (Int64(0), [Int64(1), 2, 4], [Int64(1), 3]), (1, [2, 4], [3]), (3, [4], [3]), (9, [], [3]),
    ] as [(Int64, [Int64], [Int64])])
  func anAcknowledgementRemovesTheOwnersEventsUpToItsNumber(
    upTo: Int64, ours: [Int64], others: [Int64]
  ) throws {
    try fill()
    try table.acknowledge(upTo: upTo, for: tag(1))
    #expect(try all(for: tag(1)) == ours)
    #expect(try all(for: tag(2)) == others)
  }

  @Test func withoutAnOwnerOnlyEventsOfNobodyAreAcknowledged() throws {
    try fill()
    try table.acknowledge(upTo: 9, for: nil)
    #expect(try all(for: tag(1)) == [2, 4])
    #expect(try all(for: tag(2)) == [3])
  }

  @Test func aNumberIsUsedOnce() throws {
    try fill()
    #expect(throws: Failure.self) { try table.add(4, owner: nil, sealed: []) }
  }
}
