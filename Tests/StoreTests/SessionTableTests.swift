import Base
import TestSupport
import Testing

@testable import Store

@Suite struct SessionTableTests {
  let folder: TemporaryFolder
  let table: SessionTable

  init() throws {
    folder = try TemporaryFolder()
    table = SessionTable(try folder.open())
  }

  private func full() -> SessionRow {
    let row = SessionRow()
    row.generation = 3
    row.owner = [1]
    row.ended = "x"
    row.wrapSession = [2]
    row.wrapBiometric = [3]
    row.tokens = [4]
    row.choice = [5]
    row.memberships = [6]
    row.cacheKey = [18]
    row.noteAuthentication(Instant(wallMS: 7, monotonicMS: 17, bootID: "third boot"))
    row.noteValidation(
      Instant(wallMS: 8, monotonicMS: 16, bootID: "other boot"), serverMS: 19)
    row.expiresMS = 9
    row.membershipsMS = 10
    row.locked = true
    row.intentMS = 12
    row.backgroundWallMS = 13
    row.backgroundMonotonicMS = 14
    row.backgroundBoot = "boot"
    row.seenWallMS = 15
    return row
  }

  /// A class prints as its name only, so the properties are compared one by one.
  private func dump(_ row: SessionRow) -> [String] {
    Mirror(reflecting: row).children.map { "\($0.label ?? ""): \($0.value)" }
  }

  @Test func aNewFileHasAnEmptySessionOfGeneration0() throws {
    expect(dump(try table.read()), equals: dump(SessionRow()))
  }

  @Test func everyColumnComesBack() throws {
    expect(dump(full()).count, equals: 24)
    try expect(table.write(full(), expecting: 0))
    expect(dump(try table.read()), equals: dump(full()))
  }

  @Test func absentValuesComeBackAsNil() throws {
    try expect(table.write(full(), expecting: 0))
    try expect(table.write(SessionRow(), expecting: 3))
    expect(dump(try table.read()), equals: dump(SessionRow()))
  }

  @Test func aWriteOverAnotherGenerationChangesNothing() throws {
    let row = SessionRow()
    row.generation = 1
    row.tokens = [1]
    try expect(table.write(row, expecting: 0))
    let late = SessionRow()
    late.generation = 1
    late.tokens = [9]
    try expect(!table.write(late, expecting: 0))
    try expect(!table.write(late, expecting: 2))
    try expect(table.read().tokens, equals: [1])
  }

  @Test func ofTwoWritersOfOneGenerationOneSucceeds() throws {
    let other = SessionTable(try folder.open())
    let row = try other.read()
    row.generation = 1
    row.tokens = [2]
    try expect(table.read().generation, equals: 0)
    try expect(other.write(row, expecting: 0))
    try expect(!table.write(row, expecting: 0))
    try expect(table.read().tokens, equals: [2])
  }

  @Test func clearingKeepsTheGenerationAndTheLatestTime() throws {
    let row = full()
    row.clear(ended: "revoked")
    let expected = SessionRow()
    expected.generation = 3
    expected.ended = "revoked"
    expected.seenWallMS = 15
    expect(dump(row), equals: dump(expected))
  }

  @Test func forgettingTheBackgroundClearsItsThreeColumns() throws {
    let row = full()
    row.forgetBackground()
    let expected = full()
    expected.backgroundWallMS = nil
    expected.backgroundMonotonicMS = nil
    expected.backgroundBoot = nil
    expect(dump(row), equals: dump(expected))
  }

  private func validated(wallMS: Int64, serverMS: Int64) -> SessionRow {
    let row = SessionRow()
    row.noteValidation(
      Instant(wallMS: wallMS, monotonicMS: 50, bootID: "boot"), serverMS: serverMS)
    return row
  }

  private func age(_ row: SessionRow, _ wallMS: Int64, _ boot: String, _ monotonicMS: Int64 = 90)
    -> Int64
  {
    row.validatedAgeMS(Instant(wallMS: wallMS, monotonicMS: monotonicMS, bootID: boot))
  }

  @Test func aNewValidationTellsTheTimeOfTheMembershipsByThePresentClock() {
    let monthMS: Int64 = 30 * 86_400_000
    for correctedMS in [monthMS, -monthMS, 0] {
      let row = validated(wallMS: 2 * monthMS, serverMS: 2 * monthMS)
      row.membershipsMS = 2 * monthMS
      let later = Instant(
        wallMS: 2 * monthMS + correctedMS + 40, monotonicMS: 90, bootID: "boot")
      row.noteValidation(later, serverMS: later.wallMS)
      expect(row.membershipsAgeMS(later), equals: 40)
      expect(row.membershipsMS, equals: later.wallMS - 40)
    }
    // Memberships that were never listed have no time.
    let row = validated(wallMS: 1000, serverMS: 1000)
    row.noteValidation(
      Instant(wallMS: 2000, monotonicMS: 90, bootID: "boot"), serverMS: 2000)
    expect(row.membershipsMS, equals: 0)
  }

  @Test func theAgeOfAValidationCountsByTheMonotonicClockWithinABoot() {
    let row = validated(wallMS: 1000, serverMS: 1000)
    expect(row.validatedServerMS, equals: 1000)
    for wallMS: Int64 in [0, 1040, 1_000_000] { expect(age(row, wallMS, "boot"), equals: 40) }
    // A monotonic clock that went back is another boot's, whatever the name says.
    expect(age(row, 1040, "boot", 10), equals: 40)
  }

  @Test func theAgeOfAValidationAcrossBootsIsTheShorterOfTwo() {
    // The clock was right, and is: the time that passed.
    expect(age(validated(wallMS: 1000, serverMS: 1000), 1300, "next"), equals: 300)
    // It was behind and was corrected; it was ahead and was corrected.
    expect(age(validated(wallMS: 1000, serverMS: 9000), 9300, "next"), equals: 300)
    expect(age(validated(wallMS: 9000, serverMS: 1000), 1300, "next"), equals: -7700)
    // It was ahead and still is.
    expect(age(validated(wallMS: 9000, serverMS: 1000), 9300, "next"), equals: 300)
  }

  @Test func theAgeOfAProofCountsByTheMonotonicClockWithinABootElseByTheDevices() {
    let row = SessionRow()
    row.noteAuthentication(Instant(wallMS: 1000, monotonicMS: 50, bootID: "boot"))
    func age(_ wallMS: Int64, _ boot: String, _ monotonicMS: Int64) -> Int64 {
      row.authenticatedAgeMS(Instant(wallMS: wallMS, monotonicMS: monotonicMS, bootID: boot))
    }
    expect(age(999_000, "boot", 90), equals: 40)
    expect(age(1300, "next", 90), equals: 300)
    expect(age(1300, "boot", 10), equals: 300)
  }

  @Test func aMissingRowIsDamage() throws {
    try table.database.execute("DELETE FROM session")
    do {
      _ = try table.read()
      Issue.record("it was read")
    } catch {
      expect(error.code, equals: .storageDamaged)
    }
  }
}
