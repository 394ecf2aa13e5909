import Base
import Testing

@testable import Store

@Suite struct QueueTableTests {
  private func table(_ folder: TemporaryFolder) throws -> QueueTable {
    QueueTable(try folder.open())
  }

  @Test func aBatchHoldsOneShapeWithinBothLimitsAndIsLeased() throws {
    let folder = try TemporaryFolder()
    let table = try table(folder)
    for number in 0..<10 {
      let row = queueRow(number, body: [UInt8](repeating: 1, count: 100))
      if number == 4 { row.batchKey = [UInt8](repeating: 9, count: 16) }
      _ = try table.insert(row)
    }
    let owner = queueRow(0).owner
    let first = try table.take(
      of: owner, holder: [1], until: 50, maximumItems: 6, maximumSize: 450)
    #expect(first.map { $0.createdMS } == [0, 1, 2, 3])
    let second = try table.take(
      of: owner, holder: [2], until: 50, maximumItems: 6, maximumSize: 10_000)
    #expect(second.map { $0.createdMS } == [5, 6, 7, 8, 9])
    let third = try table.take(
      of: owner, holder: [2], until: 50, maximumItems: 6, maximumSize: 10_000)
    #expect(third.map { $0.createdMS } == [4])
    #expect(
      try table.take(of: owner, holder: [2], until: 50, maximumItems: 6, maximumSize: 1).isEmpty)
  }

  @Test func anItemLargerThanABatchTravelsAlone() throws {
    let folder = try TemporaryFolder()
    let table = try table(folder)
    for number in 0..<2 { _ = try table.insert(queueRow(number)) }
    let taken = try table.take(
      of: queueRow(0).owner, holder: [1], until: 1, maximumItems: 5, maximumSize: 1)
    #expect(taken.count == 1)
  }

  @Test func aDeadHoldersItemsComeBackAndNoOthers() throws {
    let folder = try TemporaryFolder()
    let table = try table(folder)
    for number in 0..<4 { _ = try table.insert(queueRow(number)) }
    let owner = queueRow(0).owner
    _ = try table.take(of: owner, holder: [1], until: 9, maximumItems: 2, maximumSize: 99)
    _ = try table.take(of: owner, holder: [2], until: 9, maximumItems: 2, maximumSize: 99)
    try table.reclaim(from: [1])
    let counts = try table.counts(of: owner)
    #expect(counts.pending == 2)
    #expect(counts.sending == 2)
  }

  @Test func aChildIsFreeWhenItsLastParentHasGone() throws {
    let folder = try TemporaryFolder()
    let table = try table(folder)
    let (a, b, child) = (queueRow(1), queueRow(2), queueRow(3))
    for row in [a, b] { _ = try table.insert(row) }
    let waiting = child
    waiting.state = .waiting(.dependency)
    _ = try table.insert(waiting)
    try table.dependencies.add(child.item, on: a.item)
    try table.dependencies.add(child.item, on: b.item)
    try table.remove(a.item)
    #expect(try table.releaseDependents(of: a.item) == 0)
    #expect(try table.find(child.item)?.state == .waiting(.dependency))
    try table.remove(b.item)
    #expect(try table.releaseDependents(of: b.item) == 1)
    #expect(try table.find(child.item)?.state == .pending)
  }

  @Test func aRetryIsForTheOwnersParkedItemsAlone() throws {
    let folder = try TemporaryFolder()
    let table = try table(folder)
    for number in 0..<3 { _ = try table.insert(queueRow(number, owner: number == 2 ? 5 : 1)) }
    for sequence in 1...3 { try table.transition(Int64(sequence), .parked(rejection: [1])) }
    #expect(try table.retry(nil, of: queueRow(0).owner) == 2)
    #expect(try table.find(queueRow(2).item)?.state == .parked)
    #expect(try table.find(queueRow(0).item)?.rejection == nil)
  }
}
