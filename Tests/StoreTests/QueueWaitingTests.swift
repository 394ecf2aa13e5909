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

  @Test func suspendingStopsThePendingItemsOfOneBatchKey() throws {
    for number in 0..<4 {
      let row = queueRow(number, owner: number == 3 ? 2 : 1)
      if number == 2 { row.batchKey = tag(9) }
      _ = try table.insert(row)
    }
    try table.pause(like: 1, of: tag(1), .time(until: 40))
    try expect(table.state(0), equals: .waiting(.time(until: 40)))
    try expect(table.state(1), equals: .waiting(.time(until: 40)))
    try expect(table.state(2), equals: .pending)
    try expect(table.state(3), equals: .pending)
  }

  @Test func suspendedItemsAreCountedByBatchKey() throws {
    for number in 0..<5 {
      let row = queueRow(number, owner: number == 4 ? 2 : 1)
      if number > 1 { row.batchKey = tag(9) }
      _ = try table.insert(row)
    }
    try table.pause(like: 1, of: tag(1), .time(until: 40))
    try table.transition(3, .waiting(.time(until: 50)))
    try table.transition(4, .waiting(.server(until: 50)))
    let found = try table.waiting(of: tag(1), for: .time(until: 0)).map { $0.count }
    expect(found.sorted(), equals: [1, 2])
    try expect(table.waiting(of: tag(2), for: .time(until: 0)).isEmpty)
  }

  @Test func suspendingLeavesOtherStatesAlone() throws {
    try table.fill(4)
    try table.transition(2, .parked)
    try table.transition(3, .waiting(.organisation))
    try table.transition(4, .waiting(.time(until: 90)))
    try table.pause(like: 1, of: tag(1), .time(until: 40))
    try expect(table.state(1), equals: .parked)
    try expect(table.state(2), equals: .waiting(.organisation))
    try expect(table.state(3), equals: .waiting(.time(until: 90)))
  }

  private let longest = LongestPauses(ownMS: 100, askedMS: 1000)

  private func leftMS(_ now: SteadyTime, of owner: UInt8 = 1) throws -> Int64? {
    try table.leftMS(of: tag(owner), now: now, longest: longest)
  }

  @Test(arguments: [(SteadyTime(ms: 39), 0), (40, 1), (50, 2), (51, 2)] as [(SteadyTime, Int64)])
  func anItemIsPromotedWhenItsTimeHasCome(now: SteadyTime, promoted: Int64) throws {
    try table.fill(3)
    try table.transition(1, .waiting(.time(until: 50)))
    try table.transition(2, .waiting(.server(until: 40)))
    try table.transition(3, .waiting(.kind))
    try expect(leftMS(now), equals: 40 - now.ms)
    try table.promote(of: tag(1), now: now, longest: longest)
    try expect(table.counts(of: tag(1)).pending, equals: promoted)
    try expect(table.state(2), equals: .waiting(.kind))
  }

  @Test func onlySuspendedItemsOfTheOwnerAreDue() throws {
    try table.fill(2)
    try table.transition(1, .waiting(.organisation))
    try expect(leftMS(0), equals: nil)
    try expect(!table.hasPaused(of: tag(1)))
    try table.transition(2, .waiting(.time(until: 3)))
    try expect(table.hasPaused(of: tag(1)))
    // One that was found to be at fault waits for itself alone.
    try table.transition(2, .waiting(.time(until: 3)), history: .alone(failures: 1))
    try expect(!table.hasPaused(of: tag(1)))
    try expect(leftMS(0, of: 2), equals: nil)
    try table.promote(of: tag(2), now: 9, longest: longest)
    try expect(table.state(1), equals: .waiting(.time(until: 3)))
  }

  @Test func withoutDueItemsPromotingDoesNotWaitForTheWriteLock() throws {
    try table.fill(1)
    try table.transition(1, .waiting(.time(until: 50)))
    let other = try folder.open()
    try other.transaction { () throws(Failure) in
      try table.promote(of: tag(1), now: 49, longest: longest)
      try expect(table.waiting(of: tag(1), for: .kind).isEmpty)
    }
  }

  /// Each reason has its own longest wait: 100 for `time`, 1000 for `server`.
  @Test(arguments: [
    (WaitReason.time(until: 1100), Int64(100), false), (.time(until: 1101), 0, true),
    (.time(until: 999_999), 0, true), (.server(until: 1101), 101, false),
    (.server(until: 2000), 1000, false), (.server(until: 2001), 0, true),
    (.time(until: SteadyTime(ms: 1 << 56)), 0, true),
  ])
  func anItemThatWaitsLongerThanAnyDoesIsDue(
    _ reason: WaitReason, _ left: Int64, _ isDue: Bool
  ) throws {
    try table.fill(1)
    try table.transition(1, .waiting(reason))
    try expect(leftMS(1000), equals: left)
    try table.promote(of: tag(1), now: 1000, longest: longest)
    try expect(table.state(0), equals: (isDue ? .pending : .waiting(reason)))
  }

  @Test func theUsersWishEndsOurOwnWaitsOnly() throws {
    try table.fill(4)
    let reasons: [WaitReason] = [.time(until: 50), .server(until: 50), .organisation, .kind]
    for (index, reason) in reasons.enumerated() {
      try table.transition(Int64(index + 1), .waiting(reason))
    }
    try table.endOwnPauses(of: tag(2))
    try expect(table.state(0), equals: .waiting(.time(until: 50)))
    try table.endOwnPauses(of: tag(1))
    try expect(table.state(0), equals: .pending)
    for index in 1...3 { try expect(table.state(index), equals: .waiting(reasons[index])) }
  }

  // MARK: Kind

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

  // MARK: Organisation

  @Test func anOrganisationsPendingAndSuspendedItemsAreWithheld() throws {
    try table.fill(6)
    let other = queueRow(6)
    other.org = tag(6)
    _ = try table.insert(other)
    try table.transition(2, .waiting(.time(until: 9)))
    try table.transition(3, .waiting(.dependency))
    try table.transition(4, .waiting(.kind))
    try table.transition(5, .parked)
    try table.assign(6, retryGroup: 1)
    _ = try table.take(of: tag(1), holder: [1], until: 9, maximumSize: 99) { _ in 1 }
    try table.withhold(org: tag(7), of: tag(2))
    try expect(!table.hasWaitingForOrganisation(of: tag(1)))
    try table.withhold(org: tag(7), of: tag(1))
    try expect(
      (0..<7).map { try table.state($0) },
      equals: [
        .sending, .waiting(.organisation), .waiting(.dependency), .waiting(.kind), .parked,
        .waiting(.organisation), .pending,
      ])
  }

  @Test func aReleasedItemIsPendingOrWaitsForItsParent() throws {
    try table.fill(4)
    let other = queueRow(4)
    other.org = tag(6)
    _ = try table.insert(other)
    try table.dependencies.add(queueRow(1).item, on: queueRow(3).item)
    for sequence in [1, 2, 5] {
      try table.transition(Int64(sequence), .waiting(.organisation), history: .refused(since: 1))
    }
    try table.transition(3, .waiting(.kind))
    try table.release(org: tag(7), of: tag(1))
    try expect(
      (0..<5).map { try table.state($0) },
      equals: [
        .pending, .waiting(.dependency), .waiting(.kind), .pending, .waiting(.organisation),
      ])
    // A release keeps the denials.
    try expect(table.find(queueRow(0).item)?.history, equals: .refused(since: 1))
  }

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

  @Test func aChildIsReleasedWhenItsLastParentHasGone() throws {
    try table.fill(3)
    try table.transition(3, .waiting(.dependency))
    for parent in 0..<2 {
      try table.dependencies.add(queueRow(2).item, on: queueRow(parent).item)
    }
    try expect(table.releaseDependents(of: queueRow(0).item), equals: 0)
    try expect(table.state(2), equals: .waiting(.dependency))
    try expect(table.releaseDependents(of: queueRow(1).item), equals: 1)
    try expect(table.state(2), equals: .pending)
  }

  @Test(arguments: [
    Change(.waiting(.organisation)), Change(.parked), Change(.waiting(.time(until: 3))),
  ])
  func aChildThatWaitsForSomethingElseIsNotReleased(_ change: Change) throws {
    try table.fill(2)
    try table.dependencies.add(queueRow(0).item, on: queueRow(1).item)
    try table.transition(1, change)
    try expect(table.releaseDependents(of: queueRow(1).item), equals: 0)
    try expect(table.state(0), equals: change.state)
    try expect(table.dependencies.isEmpty())
  }
}
