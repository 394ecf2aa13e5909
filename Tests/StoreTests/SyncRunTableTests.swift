import Base
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
    #expect(try run() == nil)
    try table.start(of: tag(1), now: 10)
    #expect(try run() == [10, 0, 0])
    try table.count(of: tag(1), sent: 2, parked: 1, now: 20)
    try table.start(of: tag(1), now: 30)
    #expect(try run() == [10, 2, 1])
  }

  @Test func totalsAddUpAndCountingAloneStartsARun() throws {
    try table.count(of: tag(1), sent: 0, parked: 1, now: 40)
    try table.count(of: tag(1), sent: 5, parked: 0, now: 50)
    try table.count(of: tag(1), sent: 5, parked: 2, now: 60)
    #expect(try run() == [40, 10, 3])
  }

  @Test func runsOfOwnersAreSeparateAndANewOneBeginsAtZero() throws {
    try table.count(of: tag(1), sent: 1, parked: 0, now: 1)
    try table.count(of: tag(2), sent: 2, parked: 0, now: 2)
    try table.end(of: tag(1))
    #expect(try run(1) == nil)
    #expect(try run(2) == [2, 2, 0])
    try table.start(of: tag(1), now: 3)
    #expect(try run(1) == [3, 0, 0])
  }

  @Test func idsAreKeptWithTheRunAndGoWithIt() throws {
    try table.keep(ids: [1], of: tag(1))
    #expect(try table.find(of: tag(1)) == nil)
    try table.start(of: tag(1), now: 1)
    #expect(try table.find(of: tag(1))?.ids == nil)
    try table.keep(ids: [1, 2], of: tag(1))
    try table.count(of: tag(1), sent: 1, parked: 0, now: 2)
    #expect(try table.find(of: tag(1))?.ids == [1, 2])
    try table.end(of: tag(1))
    try table.start(of: tag(1), now: 3)
    #expect(try table.find(of: tag(1))?.ids == nil)
  }

  @Test func aRunSurvivesARestart() throws {
    try table.count(of: tag(1), sent: 1, parked: 2, now: 3)
    table.database.close()
    let run = try SyncRunTable(try folder.open()).find(of: tag(1))
    #expect((run?.started, run?.sent, run?.parked) == (3, 1, 2))
  }
}
