import Base
import TestSupport
import Testing

@testable import Store

@Suite struct DependencyTableTests {
  let folder: TemporaryFolder
  let table: DependencyTable

  init() throws {
    folder = try TemporaryFolder()
    table = DependencyTable(try folder.open())
  }

  @Test func aDependencyIsStoredOnce() throws {
    try expect(table.isEmpty())
    try expect(table.add(tag(1), on: tag(2)))
    try expect(table.add(tag(1), on: tag(2)))
    try expect(!table.isEmpty())
    try expect(table.children(of: tag(2)), equals: [tag(1)])
    try expect(table.children(of: tag(1)).isEmpty)
  }

  @Test func aCycleOfAnyLengthIsRefused() throws {
    try expect(!table.add(tag(1), on: tag(1)))
    for number: UInt8 in 1..<20 { try expect(table.add(tag(number), on: tag(number + 1))) }
    for number: UInt8 in 1..<20 {
      try expect(!table.add(tag(20), on: tag(number)))
      try expect(!table.add(tag(number + 1), on: tag(number)))
    }
    // Two ways to one ancestor are not a cycle.
    try expect(table.add(tag(1), on: tag(20)))
    try expect(table.children(of: tag(20)).count, equals: 2)
  }

  @Test func aParkedAncestorAtAnyDistanceBlocks() throws {
    let queue = QueueTable(table.database)
    try queue.fill(4)
    for number in 0..<3 { try table.add(queueRow(number).item, on: queueRow(number + 1).item) }
    try expect(table.waitingForParked(of: tag(1), in: 1...4), equals: [])
    try queue.transition(4, .parked)
    // An item does not wait for itself.
    try expect(table.waitingForParked(of: tag(1), in: 1...4), equals: [1, 2, 3])
    try expect(table.waitingForParked(of: tag(1), in: 2...2), equals: [2])
  }

  @Test func eachSideIsRemovedByItself() throws {
    try table.add(tag(1), on: tag(2))
    try table.add(tag(2), on: tag(3))
    try table.removeParents(of: tag(2))
    try expect(table.children(of: tag(3)).isEmpty)
    try expect(table.children(of: tag(2)), equals: [tag(1)])
    try table.removeChildren(of: tag(2))
    try expect(table.isEmpty())
  }

  @Test func anOwnersDependenciesAreRemovedByTheQueuesRows() throws {
    let queue = QueueTable(table.database)
    for number in 0..<2 { _ = try queue.insert(queueRow(number, owner: UInt8(number + 1))) }
    for number in 0..<2 { try table.add(queueRow(number).item, on: tag(9)) }
    try queue.removeAll(of: tag(2))
    try expect(table.children(of: tag(9)), equals: [queueRow(0).item])
  }
}
