import Base
import TestSupport
import Testing

@testable import Store

@Suite struct NoticeTableTests {
  let folder: TemporaryFolder
  let table: NoticeTable

  init() throws {
    folder = try TemporaryFolder()
    table = NoticeTable(try folder.open())
  }

  /// Notices 1 to 4, of no owner, owner 1, owner 2 and owner 1, stored out of order.
  private func fill() throws {
    try table.add(4, owner: tag(1), sealed: [4])
    try table.add(1, owner: nil, sealed: [1])
    try table.add(3, owner: tag(2), sealed: [3])
    try table.add(2, owner: tag(1), sealed: [2])
  }

  /// The numbers that a user gets, each removed after it was given.
  private func all(for owner: [UInt8]?) throws -> [Int64] {
    var numbers: [Int64] = []
    while let (number, sealed) = try table.first(for: owner) {
      expect(sealed, equals: [UInt8(number)])
      numbers.append(number)
      try table.remove(number)
    }
    return numbers
  }

  @Test func anOwnerGetsTheirNoticesAndThoseOfNobodyInOrder() throws {
    try fill()
    try expect(all(for: tag(1)), equals: [1, 2, 4])
    try expect(all(for: tag(2)), equals: [3])
    try expect(all(for: nil).isEmpty)
  }

  @Test func withoutAUserOnlyThoseOfNobodyAreGiven() throws {
    try fill()
    try expect(all(for: nil), equals: [1])
  }

  @Test func theOneThatWasGivenIsLeftOut() throws {
    try fill()
    try expect(table.first(for: tag(1), but: 1)?.0, equals: 2)
    try expect(table.first(for: tag(1), but: 2)?.0, equals: 1)
    try expect(table.first(for: nil, but: 1) == nil)
  }
}
