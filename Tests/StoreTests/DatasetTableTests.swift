import Base
import TestSupport
import Testing

@testable import Store

@Suite struct DatasetTableTests {
  let folder: TemporaryFolder
  let table: DatasetTable

  init() throws {
    folder = try TemporaryFolder()
    table = DatasetTable(try folder.openCache())
  }

  private func full() -> DatasetTable.Entry {
    let entry = DatasetTable.Entry()
    entry.asOfMS = 1
    entry.cursor = [2]
    entry.reconciledMS = 3
    entry.round = 4
    entry.reconciled = [5]
    entry.skipped = 6
    entry.problem = "rls"
    entry.sealed = [7]
    return entry
  }

  private func dump(_ entry: DatasetTable.Entry) -> [String] {
    Mirror(reflecting: entry).children.map { "\($0.label ?? ""): \($0.value)" }
  }

  @Test func everyColumnComesBackAndAnAbsentOneAsNil() throws {
    try expect(table.read(.rows, of: tag(1)) == nil)
    try table.write(.rows, of: tag(1), full())
    expect(dump(try #require(try table.read(.rows, of: tag(1)))), equals: dump(full()))
    try table.write(.rows, of: tag(1), DatasetTable.Entry())
    expect(
      dump(try #require(try table.read(.rows, of: tag(1)))), equals: dump(DatasetTable.Entry()))
  }

  @Test func namesAndOrganisationsAreSeparate() throws {
    try table.write(.rows, of: tag(1), full())
    try expect(table.read(.summary, of: tag(1)) == nil)
    try expect(table.read(.rows, of: tag(2)) == nil)
    try table.write(.summary, of: tag(1), full())
    try table.write(.summary, of: tag(2), full())
    try expect(table.removeAll(in: tag(1)), equals: 2)
    try expect(table.read(.summary, of: tag(2)) != nil)
    try table.removeAll()
    try expect(table.read(.summary, of: tag(2)) == nil)
  }

  @Test func anExpiredReconcileBeginsANewRoundAndKeepsTheRest() throws {
    try table.write(.rows, of: tag(1), full())
    try table.write(.rows, of: tag(2), full())
    try table.expireReconciles(in: tag(1))
    let expected = full()
    expected.reconciledMS = nil
    expected.reconciled = nil
    expected.round = 5
    expect(dump(try #require(try table.read(.rows, of: tag(1)))), equals: dump(expected))
    expect(dump(try #require(try table.read(.rows, of: tag(2)))), equals: dump(full()))
  }

  @Test func theSetsOfAnOrganisationAreFoundAndExpireAndGoTogether() throws {
    try table.write(.rows, of: tag(1), full())
    try table.write(.rows, of: tag(5), in: tag(1), full())
    try table.write(.rows, of: tag(6), in: tag(2), full())
    try table.write(.summary, of: tag(1), full())
    try expect(table.sets(in: tag(1)), equals: [tag(1), tag(5)])
    try table.expireReconciles(in: tag(1))
    try expect(table.read(.rows, of: tag(5))?.round, equals: 5)
    try expect(table.read(.rows, of: tag(6))?.round, equals: 4)
    try expect(table.removeAll(in: tag(1)), equals: 3)
    try expect(table.read(.rows, of: tag(5)) == nil)
    try expect(table.read(.rows, of: tag(6)) != nil)
  }
}
