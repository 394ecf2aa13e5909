import Base
import TestSupport
import Testing

@testable import Store

@Suite struct LeaseTableTests {
  let folder: TemporaryFolder
  let table: LeaseTable

  init() throws {
    folder = try TemporaryFolder()
    table = LeaseTable(try folder.open())
  }

  @Test(
    arguments: [
      (999, true), (1000, false), (1001, false),
      // More than an hour: stored in another boot, under another clock.
      (-3_599_000, true), (-3_599_001, false),
    ] as [(SteadyTime, Bool)])
  func aLeaseHoldsForAtMostAnHourBeforeItsEnd(now: SteadyTime, isHeld: Bool) throws {
    try table.take("refresh", holder: [1], until: 1000)
    try expect(table.other("refresh", than: [2], now: now)?.holder, equals: (isHeld ? [1] : nil))
    try expect(table.other("refresh", than: [2], now: now)?.until, equals: (isHeld ? 1000 : nil))
  }

  @Test func aLeaseHoldsAgainstOthersOnly() throws {
    try table.take("refresh", holder: [1], until: 1000)
    try expect(table.other("refresh", than: [1], now: 10)?.holder, equals: nil)
    try expect(table.other("refresh", than: [1], now: 10)?.until, equals: nil)
    try expect(table.other("other", than: [2], now: 10)?.holder, equals: nil)
  }

  @Test func takingAgainRenewsOrPassesItOn() throws {
    try table.take("refresh", holder: [1], until: 1000)
    try table.take("refresh", holder: [1], until: 2000)
    try expect(table.other("refresh", than: [2], now: 1500)?.until, equals: 2000)
    try table.take("refresh", holder: [2], until: 3000)
    try expect(table.other("refresh", than: [1], now: 2500)?.holder, equals: [2])
    try expect(table.other("refresh", than: [2], now: 2500)?.holder, equals: nil)
  }

  @Test func onlyTheHolderReleasesIt() throws {
    try table.take("refresh", holder: [1], until: 1000)
    try table.take("other", holder: [1], until: 1000)
    try table.release("refresh", holder: [2])
    try expect(table.other("refresh", than: [2], now: 10)?.holder, equals: [1])
    try table.release("refresh", holder: [1])
    try expect(table.other("refresh", than: [2], now: 10)?.holder, equals: nil)
    try expect(table.other("other", than: [2], now: 10)?.holder, equals: [1])
  }

  @Test func anotherProcessSeesIt() throws {
    try table.take("refresh", holder: [1], until: 1000)
    let other = LeaseTable(try folder.open())
    try expect(other.other("refresh", than: [2], now: 10)?.holder, equals: [1])
  }
}
