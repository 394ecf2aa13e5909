import Base
import TestSupport
import Testing

@testable import Store

@Suite struct SyncRunTableTests {
  let folder: TemporaryFolder
  let table: SyncRunTable

  init() throws {
    folder = try TemporaryFolder()
    table = SyncRunTable(try folder.open())
  }

  private func run(_ owner: UInt8 = 1) throws -> [Int64]? {
    try table.find(of: tag(owner)).map { [$0.started.ms, $0.sent, $0.parked] }
  }

  @Test func startingTwiceKeepsTheFirstStartAndTheTotals() throws {
    try expect(run(), equals: nil)
    try table.start(of: tag(1), now: 10)
    try expect(run(), equals: [10, 0, 0])
    try table.count(of: tag(1), sent: 2, parked: 1, now: 20)
    try table.start(of: tag(1), now: 30)
    try expect(run(), equals: [10, 2, 1])
  }

  @Test func totalsAddUpAndCountingAloneStartsARun() throws {
    try table.count(of: tag(1), sent: 0, parked: 1, now: 40)
    try table.count(of: tag(1), sent: 5, parked: 0, now: 50)
    try table.count(of: tag(1), sent: 5, parked: 2, now: 60)
    try expect(run(), equals: [40, 10, 3])
  }

  @Test func runsOfOwnersAreSeparateAndANewOneBeginsAtZero() throws {
    try table.count(of: tag(1), sent: 1, parked: 0, now: 1)
    try table.count(of: tag(2), sent: 2, parked: 0, now: 2)
    try table.end(of: tag(1))
    try expect(run(1), equals: nil)
    try expect(run(2), equals: [2, 2, 0])
    try table.start(of: tag(1), now: 3)
    try expect(run(1), equals: [3, 0, 0])
  }

  @Test func idsAreKeptWithTheRunAndGoWithIt() throws {
    try table.keep(ids: [1], of: tag(1))
    try expect(table.find(of: tag(1)) == nil)
    try table.start(of: tag(1), now: 1)
    try expect(table.find(of: tag(1))?.ids, equals: nil)
    try table.keep(ids: [1, 2], of: tag(1))
    try table.count(of: tag(1), sent: 1, parked: 0, now: 2)
    try expect(table.find(of: tag(1))?.ids, equals: [1, 2])
    try table.end(of: tag(1))
    try table.start(of: tag(1), now: 3)
    try expect(table.find(of: tag(1))?.ids, equals: nil)
  }

  @Test func aRunSurvivesARestart() throws {
    try table.count(of: tag(1), sent: 1, parked: 2, now: 3)
    table.database.close()
    let run = try SyncRunTable(try folder.open()).find(of: tag(1))
    expect((run?.started, run?.sent, run?.parked) == (3, 1, 2))
  }
}
