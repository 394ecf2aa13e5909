import Base
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
    #expect(try table.int(.clockOffset) == nil)
    #expect(try table.blob(.keyCheck) == nil)
    #expect(try table.text(.salvage) == nil)
    try table.set(.clockOffset, .int(-1 << 56))
    try table.set(.steadyBoot, .int(Int64.min))
    try table.set(.keyCheck, .blob([0, 255]))
    try table.set(.salvage, .text("holdfast.db.damaged-1"))
    #expect(try table.int(.clockOffset) == -1 << 56)
    #expect(try table.word(.steadyBoot) == .min)
    #expect(try table.word(.retryGroup) == nil)
    #expect(try table.blob(.keyCheck) == [0, 255])
    #expect(try table.text(.salvage) == "holdfast.db.damaged-1")
  }

  @Test func aCounterAtItsEndIsDamage() throws {
    try table.set(.uploads, .int((1 << 52) - 1))
    #expect(try table.next(.uploads) == 1 << 52)
    #expect(throws: Failure.self) { try table.next(.uploads) }
    #expect(table.database.isDamaged)
  }

  @Test func aTextThatIsSetToNullIsAbsent() throws {
    try table.set(.salvage, .text("x"))
    try table.set(.salvage, .null)
    #expect(try table.text(.salvage) == nil)
  }

  @Test func namesAreIndependentAndTheLastValueCounts() throws {
    try table.set(.retryGroup, .int(1))
    try table.set(.lastSyncRun, .int(2))
    try table.set(.retryGroup, .int(3))
    #expect(try table.int(.retryGroup) == 3)
    #expect(try table.int(.lastSyncRun) == 2)
  }

  @Test func aCounterBeginsWith1AndContinuesAfterOtherWriters() throws {
    #expect(try table.next(.eventSequence) == 1)
    #expect(try table.next(.eventSequence) == 2)
    let other = MetaTable(try folder.open())
    #expect(try other.next(.eventSequence) == 3)
    #expect(try table.next(.eventSequence) == 4)
    #expect(try table.next(.uploads) == 1)
    #expect(try table.next(.eventSequence, above: 3) == 5)
    #expect(try other.next(.eventSequence, above: 9) == 10)
    #expect(try table.next(.eventSequence) == 11)
  }
}
