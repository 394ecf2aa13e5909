import Base
import TestSupport
import Testing

@testable import Store

@Suite struct ContactTableTests {
  let folder: TemporaryFolder
  let table: ContactTable
  let blocks: ContactBlockTable

  init() throws {
    folder = try TemporaryFolder()
    let database = try folder.openCache()
    table = ContactTable(database)
    blocks = ContactBlockTable(database)
  }

  private func add(
    _ row: UInt8, org: UInt8 = 7, version: String = "a", round: Int64 = 1, sealed: [UInt8] = [1]
  ) throws {
    try table.add(
      number: try table.nextNumber(), row: tag(row), org: tag(org), version: version, round: round,
      sealed: sealed)
  }

  private func rows(of org: UInt8) throws -> [[UInt8]: [UInt8]] {
    var found: [[UInt8]: [UInt8]] = [:]
    try table.each(of: tag(org)) { (_, row, sealed) throws(Failure) in found[row] = sealed }
    return found
  }

  @Test func aRowIsStoredAndReplacedUnderItsTag() throws {
    try expect(table.nextNumber(), equals: 0)
    try add(1)
    try add(2, org: 8, sealed: [2])
    try expect(table.nextNumber(), equals: 2)
    let place = try #require(try table.place(of: tag(1), in: tag(7), version: "b"))
    expect((place.number, place.round, place.isCurrent) == (0, 1, false))
    try table.replace(number: 0, version: "b", round: 2, sealed: [3])
    try expect(table.place(of: tag(1), in: tag(7), version: "b")?.isCurrent, equals: true)
    try expect(table.place(of: tag(1), in: tag(7), version: nil)?.round, equals: 2)
    try expect(table.find(row: tag(1), in: tag(7)), equals: [3])
    try expect(table.find(row: tag(3), in: tag(7)), equals: nil)
    try expect(rows(of: 7), equals: [tag(1): [3]])
    try expect(rows(of: 8), equals: [tag(2): [2]])
    try expect(table.count(of: tag(7)), equals: 1)
  }

  @Test func aRowThatIsListedAgainInItsRoundIsNotWritten() throws {
    try add(1)
    let before = table.database.changes
    try expect(table.confirm(row: tag(1), in: tag(7), version: "a", round: 1))
    expect(table.database.changes, equals: before)
  }

  @Test func rowsAreReadInTheOrderOfTheirNumbers() throws {
    for row: UInt8 in [9, 3, 5, 1] { try add(row, round: Int64(row)) }
    var found: [Int64] = []
    try table.each(of: tag(7)) { (number, _, _) throws(Failure) in found.append(number) }
    expect(found, equals: [0, 1, 2, 3])
  }

  // MARK: Own rows

  private func add(_ row: UInt8, at ms: Int64, org: UInt8 = 7) throws {
    try table.add(
      number: try table.nextNumber(isListed: true), row: tag(row), org: tag(org), version: "",
      round: 0, listedMS: ms, sealed: [row])
  }

  private func list(
    before ms: Int64 = .max, _ row: [UInt8] = [], from fromMS: Int64 = .min, limit: Int = 9
  ) throws -> [UInt8] {
    let place = ListPlace(ms: ms, row: row)
    return try table.listed(of: tag(7), before: place, fromMS: fromMS, limit: limit).map {
      $0.sealed[0]
    }
  }

  @Test func ownRowsAreListedNewestFirstAndByTheirTagsAmongThoseOfOneTime() throws {
    try add(1, at: 10)
    try add(3, at: 20)
    try add(2, at: 20)
    try add(4, at: -5)
    try add(5, at: 15, org: 8)
    // A contact
    try add(6)
    try expect(list(), equals: [3, 2, 1, 4])
    try expect(list(limit: 2), equals: [3, 2])
    try expect(list(before: 20, tag(3)), equals: [2, 1, 4])
    try expect(list(before: 20), equals: [1, 4])
    try expect(list(from: 10), equals: [3, 2, 1])
    expect(ListPlace(ms: 2, row: [1]).precedes(ListPlace(ms: 1, row: [2])))
    expect(ListPlace(ms: 1, row: [2]).precedes(ListPlace(ms: 1, row: [1])))
    expect(!ListPlace(ms: 1, row: [1]).precedes(ListPlace(ms: 1, row: [1])))
    try expect(table.removeListed(of: tag(7), before: 10), equals: 1)
    try expect(list(), equals: [3, 2, 1])
    try expect(table.hasRows(of: tag(8)) && !table.hasRows(of: tag(9)))
  }

  @Test func ownRowsLeaveNoGapsBetweenTheNumbersOfContacts() throws {
    try add(1)
    try add(2, at: 1)
    try expect(table.nextNumber(), equals: 1)
    try expect(table.nextNumber(isListed: true), equals: (1 << 40) + 1)
  }

  @Test func oneTagInTwoSetsNamesTwoRows() throws {
    try add(1, at: 10)
    try add(1, at: 10, org: 8)
    let place = try #require(try table.place(of: tag(1), in: tag(8), version: nil))
    try table.remove(number: place.number)
    try expect(table.find(row: tag(1), in: tag(8)) == nil)
    try expect(list(), equals: [1])
  }

  // MARK: Blocks

  @Test func aBlockCoversItsRows() {
    expect([0, 249, 250, 499].map { ContactBlockTable.block(of: $0) }, equals: [0, 0, 1, 1])
  }

  @Test func blocksAreStoredReplacedAndRemoved() throws {
    try blocks.put(0, of: tag(7), stamp: -5, sealed: [1])
    try blocks.put(0, of: tag(8), stamp: 6, sealed: [2])
    try blocks.put(1, of: tag(7), stamp: .max, sealed: [3])
    try blocks.put(0, of: tag(7), stamp: 7, sealed: [4])
    var stamps: [Int64: Int64] = [:]
    try blocks.each(of: tag(7)) { (number, stamp) throws(Failure) in stamps[number] = stamp }
    expect(stamps, equals: [0: 7, 1: .max])
    try expect(blocks.find(0, of: tag(7)), equals: [4])
    try expect(blocks.find(0, of: tag(8)), equals: [2])
    try blocks.remove(0, of: tag(7))
    try expect(blocks.find(0, of: tag(7)), equals: nil)
    try expect(blocks.removeAll(of: tag(8)), equals: 1)
    try blocks.removeAll()
    try expect(blocks.find(1, of: tag(7)), equals: nil)
  }
}
