import Base
import TestSupport
import Testing

@testable import Store

@Suite struct QueueWaitingTests {
  let folder: TemporaryFolder
  let table: QueueTable

  init() throws {
    folder = try TemporaryFolder()
    table = QueueTable(try folder.open())
  }

  // MARK: Time

  @Test func suspendedItemsAreCountedByBatchKey() throws {
    for number in 0..<5 {
      let row = queueRow(number, owner: number == 4 ? 2 : 1)
      if number > 1 { row.batchKey = tag(9) }
      _ = try table.insert(row)
    }
    try table.pause(like: 1, of: tag(1), .time(Pause(since: 0, until: 40)))
    try table.transition(3, .waiting(.time(Pause(since: 0, until: 50))))
    try table.transition(4, .waiting(.server(Pause(since: 0, until: 50))))
    let found = try table.waiting(of: tag(1), for: .time(Pause(since: 0, until: 0))).map {
      $0.count
    }
    expect(found.sorted(), equals: [1, 2])
    try expect(table.waiting(of: tag(2), for: .time(Pause(since: 0, until: 0))).isEmpty)
  }

  private func leftMS(_ now: SteadyTime, of owner: UInt8 = 1) throws -> Int64? {
    try table.leftMS(of: tag(owner), now: now)
  }

  @Test func onlySuspendedItemsOfTheOwnerAreDue() throws {
    try table.fill(2)
    try table.transition(1, .waiting(.organisation))
    try expect(leftMS(0), equals: nil)
    try expect(!table.hasPaused(of: tag(1)))
    try table.transition(2, .waiting(.time(Pause(since: 0, until: 3))))
    try expect(table.hasPaused(of: tag(1)))
    // One that was found to be at fault waits for itself alone.
    try table.transition(
      2, .waiting(.time(Pause(since: 0, until: 3))), history: .alone(failures: 1))
    try expect(!table.hasPaused(of: tag(1)))
    try expect(leftMS(0, of: 2), equals: nil)
    try table.promote(of: tag(2), now: 9)
    try expect(table.state(1), equals: .waiting(.time(Pause(since: 0, until: 3))))
  }

  @Test func withoutDueItemsPromotingDoesNotWaitForTheWriteLock() throws {
    try table.fill(1)
    try table.transition(1, .waiting(.time(Pause(since: 0, until: 50))))
    let other = try folder.open()
    try other.transaction { () throws(Failure) in
      try table.promote(of: tag(1), now: 49)
      try expect(table.waiting(of: tag(1), for: .kind).isEmpty)
    }
  }

  @Test(
    arguments: [
      (Pause(since: 1000, until: 1100), 100), (Pause(since: 900, until: 1000), 0),
      (Pause(since: 1001, until: 1101), 0), (Pause(since: 2000, until: 9_000_000), 0),
      (Pause(since: 0, until: 86_701_000), 86_700_000), (Pause(since: 0, until: 86_701_001), 0),
      (Pause(since: 0, until: SteadyTime(ms: 1 << 55)), 0),
    ] as [(Pause, Int64)])
  func anItemWhosePauseHasNotBegunIsDue(_ pause: Pause, _ left: Int64) throws {
    try table.fill(1)
    for reason in [WaitReason.time(pause), .server(pause), .blocked(pause)] {
      try table.transition(1, .waiting(reason), history: .alone(failures: 1))
      try expect(leftMS(1000), equals: left)
      expect(pause.lasts(at: 1000), equals: left > 0)
      try table.promote(of: tag(1), now: 1000)
      try expect(table.state(0), equals: (left > 0 ? .waiting(reason) : .pending))
    }
  }

  // MARK: Organisation

  @Test func denialsAreForgottenOnlyWhileTheItemIsWithheld() throws {
    try table.fill(3)
    try table.transition(1, .waiting(.organisation), history: .refused(since: 1))
    try table.transition(2, .pending, history: .refused(since: 1))
    try table.transition(3, .waiting(.organisation), history: .refused(since: 1))
    try table.forgetDenials(of: tag(2))
    try expect(table.find(queueRow(0).item)?.history, equals: .refused(since: 1))
    try table.forgetDenials(of: tag(1))
    try expect(
      (0..<3).map { try table.find(queueRow($0).item)?.history },
      equals: [.clean, .refused(since: 1), .clean])
  }

  // MARK: Dependencies

  @Test(arguments: [
    Change(.waiting(.organisation)), Change(.parked),
    Change(.waiting(.time(Pause(since: 0, until: 3)))),
  ])
  func aChildThatWaitsForSomethingElseIsNotReleased(_ change: Change) throws {
    try table.fill(2)
    try table.dependencies.add(queueRow(0).item, on: queueRow(1).item)
    try table.transition(1, change)
    try expect(table.releaseDependents(of: queueRow(1).item), equals: 0)
    try expect(table.state(0), equals: change.state)
    try expect(table.dependencies.isEmpty())
  }

  @Test func itemsOfOneBatchKeyAreReleasedTogetherAndNoOthers() throws {
    for number in 0..<6 {
      let row = queueRow(number, owner: number == 4 ? 2 : 1)
      row.batchKey = tag(number == 2 ? 9 : 8)
      _ = try table.insert(row)
    }
    for sequence in [1, 2, 3, 5] { try table.transition(Int64(sequence), .waiting(.kind)) }
    try table.transition(6, .waiting(.organisation))
    let held = try table.waiting(of: tag(1), for: .kind)
    expect(held.map { $0.batchKey }, equals: [tag(8), tag(9)])
    expect(held.map { $0.item }.contains(queueRow(2).item))
    try table.releaseKind(batchKey: tag(8), of: tag(1))
    try expect(
      (0..<6).map { try table.state($0) },
      equals: [
        .pending, .pending, .waiting(.kind), .pending, .waiting(.kind), .waiting(.organisation),
      ])
    try expect(table.waiting(of: tag(1), for: .kind).map { $0.batchKey }, equals: [tag(9)])
  }
}
