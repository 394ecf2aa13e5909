import Base
import Testing

@testable import Store

@Suite struct ContactTableTests {
  let folder: TemporaryFolder
  let table: ContactTable

  init() throws {
    folder = try TemporaryFolder()
    table = ContactTable(try folder.openCache())
  }

  private func rows(of org: UInt8) throws -> [[UInt8]: [UInt8]] {
    var found: [[UInt8]: [UInt8]] = [:]
    try table.each(of: tag(org)) { (row, sealed) throws(Failure) in found[row] = sealed }
    return found
  }

  @Test func aRowIsStoredAndReplacedUnderItsTag() throws {
    try table.put(row: tag(1), org: tag(7), version: "a", round: 1, sealed: [1])
    try table.put(row: tag(2), org: tag(8), version: "a", round: 1, sealed: [2])
    try table.put(row: tag(1), org: tag(7), version: "b", round: 1, sealed: [3])
    #expect(try table.find(row: tag(1)) == [3])
    #expect(try table.find(row: tag(3)) == nil)
    #expect(try rows(of: 7) == [tag(1): [3]])
    #expect(try rows(of: 8) == [tag(2): [2]])
  }

  @Test func aReconcileRemovesWhatItDidNotList() throws {
    for row: UInt8 in 1...4 {
      try table.put(row: tag(row), org: tag(7), version: "a", round: 1, sealed: [row])
    }
    try table.put(row: tag(5), org: tag(8), version: "a", round: 1, sealed: [5])
    // In round 2, row 1 is listed in its version, 2 in any, 3 in a version that is not cached.
    #expect(try table.confirm(row: tag(1), version: "a", round: 2))
    #expect(try table.confirm(row: tag(2), version: nil, round: 2))
    #expect(try !table.confirm(row: tag(3), version: "b", round: 2))
    #expect(try !table.confirm(row: tag(9), version: nil, round: 2))
    #expect(try table.removeUnmet(of: tag(7), round: 2) == 2)
    #expect(try rows(of: 7) == [tag(1): [1], tag(2): [2]])
    #expect(try rows(of: 8) == [tag(5): [5]])
  }

  @Test func aRowThatIsStoredDuringAReconcileBelongsToItsRound() throws {
    try table.put(row: tag(1), org: tag(7), version: "a", round: 1, sealed: [1])
    try table.put(row: tag(1), org: tag(7), version: "b", round: 2, sealed: [2])
    #expect(try table.removeUnmet(of: tag(7), round: 2) == 0)
    #expect(try table.removeUnmet(of: tag(7), round: 3) == 1)
  }

  @Test func rowsAreRemovedOneByOneByOrganisationOrAll() throws {
    for row: UInt8 in 1...6 {
      try table.put(row: tag(row), org: tag(row % 2), version: "a", round: 1, sealed: [row])
    }
    #expect(try table.remove(row: tag(1)))
    #expect(try !table.remove(row: tag(1)))
    #expect(try table.removeAll(of: tag(1)) == 2)
    #expect(try rows(of: 0).count == 3)
    try table.removeAll()
    #expect(try rows(of: 0).isEmpty)
  }
}
