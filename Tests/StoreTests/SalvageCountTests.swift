import Base
import TestSupport
import Testing

@testable import Store

/// How many items a salvage could not carry over.
@Suite struct SalvageCountTests {
  let folder: TemporaryFolder
  let database: Database
  let count: SalvageCount

  init() throws {
    folder = try TemporaryFolder()
    database = try folder.open()
    count = try SalvageCount(database)
  }

  /// The row of an item in the damaged file; its sequence number there is `number`.
  private func row(_ number: Int) throws(Failure) {
    try count.add(queueRow(number), Salvage.Record(rowID: Int64(number), columns: []))
  }

  /// An item's entry in the index of items.
  private func item(_ number: Int) throws(Failure) {
    try count.add(entry: [.blob(queueRow(number).item), .int(number)])
  }

  /// An item's entry in `queue_ready`.
  private func ready(_ number: Int, key: [UInt8] = tag(8), last: [Value] = []) throws(Failure) {
    try count.add(entry: [.blob(tag(1)), .int(0), .int(0), .blob(key), .int(number)] + last)
  }

  private func sequence(_ last: Int, table: String = "queue", more: [Value] = []) throws(Failure) {
    try count.add(Salvage.Record(rowID: 1, columns: [.text(table), .int(last)] + more))
  }

  private func lost(stray: Int64 = 0, pageSize: Int = 4096) throws(Failure) -> Int64 {
    try count.lost(strayPages: stray, pageSize: pageSize)
  }

  @Test func withoutEvidenceNothingIsLost() throws {
    try expect(lost(), equals: 0)
    try sequence(9)
    try expect(lost(), equals: 0)
  }

  @Test func anItemIsLostThatAnyPlaceNamesAndTheQueueDoesNotHave() throws {
    try row(1)
    try expect(lost(), equals: 1)
    try item(2)
    try expect(lost(), equals: 2)
    try ready(3)
    try expect(lost(), equals: 3)
    // Several places that name an item are one item.
    for number in 1...3 {
      try row(number)
      try item(number)
      try ready(number)
    }
    try expect(lost(), equals: 3)
  }

  @Test func anItemThatWasCarriedOverIsNotLost() throws {
    for number in 1...3 {
      try row(number)
      try item(number)
      try ready(number)
    }
    // It may have another sequence number here.
    _ = try QueueTable(database).insert(queueRow(3))
    try expect(lost(), equals: 2)
    _ = try QueueTable(database).insert(queueRow(1))
    _ = try QueueTable(database).insert(queueRow(2))
    try expect(lost(), equals: 0)
  }

  @Test func whatNamesNoItemIsNoEvidence() throws {
    try count.add(entry: [.text("queue"), .int(1)])
    try count.add(entry: [.blob([1, 2]), .int(1)])
    try count.add(entry: [.blob(tag(1)), .text("x")])
    // Indexes of other tables: three columns, four, and five without a key.
    try count.add(entry: [.blob(tag(1)), .int(2), .int(3)])
    try count.add(entry: [.blob(tag(1)), .int(2), .int(3), .blob(tag(8))])
    try ready(4, key: [1])
    try count.add(entry: [.blob(tag(1)), .int(0), .int(0), .null, .int(5)])
    try expect(lost(), equals: 0)
  }

  /// 4096 bytes have room for 22 rows, 512 for two.
  @Test func aStrayPageMayHaveHeldRowsUnlessBothIndexesNameTheSame() throws {
    try item(1)
    try expect(lost(stray: 2), equals: 1 + 2 * 22)
    try expect(lost(stray: 3, pageSize: 512), equals: 1 + 3 * 2)
    try expect(lost(stray: 0), equals: 1)
    try ready(1)
    try expect(lost(stray: 2), equals: 1)
    try ready(2)
    try expect(lost(stray: 2), equals: 2 + 2 * 22)
  }

  @Test func noMoreAreLostThanHadASequenceNumber() throws {
    try item(1)
    try sequence(6)
    try expect(lost(stray: 2), equals: 1 + 5)
    // The room is the smaller one.
    try expect(lost(stray: 2, pageSize: 400), equals: 1 + 4)
    try sequence(100)
    try expect(lost(stray: 2), equals: 1 + 44)
  }

  @Test func aSequenceNumberThatIsTooSmallRaisesAndLowersNothing() throws {
    for number in 1...4 { try item(number) }
    for last in [1, 3, 4] {
      try sequence(last)
      try expect(lost(stray: 2), equals: 4, "\(last)")
    }
    try sequence(5)
    try expect(lost(stray: 2), equals: 5)
  }

  /// Without a number that was given, all the room may have been used.
  @Test func otherRowsTellNoSequenceNumber() throws {
    try item(1)
    try sequence(2, table: "revocation")
    try sequence(2, more: [.null])
    try count.add(Salvage.Record(rowID: 1, columns: [.text("queue"), .text("2")]))
    try count.add(Salvage.Record(rowID: 1, columns: [.text("queue")]))
    try sequence(0)
    try expect(lost(stray: 1), equals: 1 + 22)
  }

  @Test func theEvidenceIsGoneInTheEnd() throws {
    try item(1)
    try count.end()
    let again = try SalvageCount(database)
    try expect(again.lost(strayPages: 0, pageSize: 4096), equals: 0)
  }
}
