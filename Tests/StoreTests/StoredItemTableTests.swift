import Base
import TestSupport
import Testing

@testable import Store

@Suite struct StoredItemTableTests {
  let folder: TemporaryFolder
  let database: Database
  let table: StoredItemTable

  init() throws {
    folder = try TemporaryFolder()
    database = try folder.open()
    table = StoredItemTable(database)
  }

  private func count() throws -> Int64? {
    try database.first("SELECT count(*) FROM stored_item") { (row) throws(Failure) in row.int(0) }
  }

  @Test func anItemIsKnownWithItsTime() throws {
    try table.add([tag(1), tag(2)], .stored, now: 50, limit: 10, since: 0)
    try expect(table.find(tag(2), since: 0), equals: StoredItemTable.Record(.stored, ms: 50))
    try expect(table.find(tag(3), since: 0), equals: nil)
  }

  @Test func anItemThatIsStoredAgainHasTheLaterTime() throws {
    try table.add([tag(1)], .stored, now: 50, limit: 10, since: 0)
    try table.add([tag(1)], .stored, now: 70, limit: 10, since: 0)
    try expect(table.find(tag(1), since: 0), equals: StoredItemTable.Record(.stored, ms: 70))
  }

  @Test func itsLastFateIsTold() throws {
    try table.add([tag(1)], .stored, now: 70, limit: 10, since: 0)
    try table.add([tag(1)], .cancelled, now: 50, limit: 10, since: 0)
    try expect(table.find(tag(1), since: 0), equals: StoredItemTable.Record(.cancelled, ms: 50))
    try expect(table.find(tag(1), since: 51), equals: nil)
  }

  @Test func theOldestGoWhenThereAreTooMany() throws {
    for number: UInt8 in 1...20 {
      try table.add([tag(number)], .stored, now: 50, limit: 5, since: 0)
    }
    try expect(count(), equals: 5)
    try expect(table.find(tag(15), since: 0), equals: nil)
    try expect(table.find(tag(16), since: 0), equals: StoredItemTable.Record(.stored, ms: 50))
    try table.add([tag(30), tag(31)], .stored, now: 50, limit: 0, since: 0)
    try expect(count(), equals: 0)
    try table.add([tag(32)], .stored, now: 50, limit: 1, since: 0)
    try expect(table.find(tag(32), since: 0), equals: StoredItemTable.Record(.stored, ms: 50))
  }

  @Test func theOldestGoAfterTheirTime() throws {
    for number: UInt8 in 1...5 {
      try table.add([tag(number)], .stored, now: Int64(number) * 10, limit: 99, since: 0)
    }
    try table.add([tag(6)], .stored, now: 60, limit: 99, since: 30)
    try expect(table.find(tag(2), since: 0), equals: nil)
    try expect(table.find(tag(3), since: 0), equals: StoredItemTable.Record(.stored, ms: 30))
    try expect(count(), equals: 4)
  }
}
