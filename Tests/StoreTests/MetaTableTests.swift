import Base
import TestSupport
import Testing

@testable import Store

@Suite struct MetaTableTests {
  let folder: TemporaryFolder
  let table: MetaTable

  init() throws {
    folder = try TemporaryFolder()
    table = MetaTable(try folder.open())
  }

  @Test func aValueIsReadAsItWasStored() throws {
    try expect(table.int(.clockOffset), equals: nil)
    try expect(table.blob(.keyCheck), equals: nil)
    try expect(table.text(.salvage), equals: nil)
    try table.set(.clockOffset, .int(-1 << 56))
    try table.set(.steadyBoot, .int(Int64.min))
    try table.set(.keyCheck, .blob([0, 255]))
    try table.set(.salvage, .text("holdfast.db.damaged-1"))
    try expect(table.int(.clockOffset), equals: -1 << 56)
    try expect(table.word(.steadyBoot), equals: .min)
    try expect(table.word(.retryGroup), equals: nil)
    try expect(table.blob(.keyCheck), equals: [0, 255])
    try expect(table.text(.salvage), equals: "holdfast.db.damaged-1")
  }

  @Test func aCounterAtItsEndIsDamage() throws {
    try table.set(.uploads, .int((1 << 52) - 1))
    try expect(table.next(.uploads), equals: 1 << 52)
    #expect(throws: Failure.self) { try table.next(.uploads) }
    expect(table.database.isDamaged)
  }

  @Test func aTextThatIsSetToNullIsAbsent() throws {
    try table.set(.salvage, .text("x"))
    try table.set(.salvage, .null)
    try expect(table.text(.salvage), equals: nil)
  }

  @Test func namesAreIndependentAndTheLastValueCounts() throws {
    try table.set(.retryGroup, .int(1))
    try table.set(.lastSyncRun, .int(2))
    try table.set(.retryGroup, .int(3))
    try expect(table.int(.retryGroup), equals: 3)
    try expect(table.int(.lastSyncRun), equals: 2)
  }

  @Test func aCounterBeginsWith1AndContinuesAfterOtherWriters() throws {
    try expect(table.next(.notice), equals: 1)
    try expect(table.next(.notice), equals: 2)
    let other = MetaTable(try folder.open())
    try expect(other.next(.notice), equals: 3)
    try expect(table.next(.notice), equals: 4)
    try expect(table.next(.uploads), equals: 1)
    try expect(table.next(.notice, above: 3), equals: 5)
    try expect(other.next(.notice, above: 9), equals: 10)
    try expect(table.next(.notice), equals: 11)
  }
}
