import Base
import TestSupport
import Testing

@testable import Store

@Suite struct QueueTableTests {
  let folder: TemporaryFolder
  let table: QueueTable

  init() throws {
    folder = try TemporaryFolder()
    table = QueueTable(try folder.open())
  }

  @Test func everyColumnOfAnInsertedItemComesBack() throws {
    let row = QueueRow()
    row.item = tag(1)
    row.owner = tag(2)
    row.org = tag(3)
    row.batchKey = tag(4)
    row.state = .waiting(.time(Pause(since: 0, until: 5)))
    row.pause = Pause(since: 0, until: 5)
    row.history = .alone(failures: 4)
    row.createdMS = 6
    row.size = 7
    row.body = [8]
    let sequence = try table.insert(row)
    row.sequence = sequence
    let found = try #require(try table.find(tag(1)))
    expect(sequence, equals: 1)
    expect(dump(found), equals: dump(row))
    expect(found.rejection, equals: nil)
    try expect(table.find(tag(9)) == nil)
  }

  private func dump(_ row: QueueRow) -> [String] {
    Mirror(reflecting: row).children.map { "\($0.label ?? ""): \($0.value)" }
  }

  @Test func aSequenceNumberIsNeverUsedAgain() throws {
    try expect(table.insert(queueRow(0)), equals: 1)
    try expect(table.insert(queueRow(1)), equals: 2)
    try table.remove(queueRow(1).item)
    try expect(table.insert(queueRow(1)), equals: 3)
  }

  // MARK: Transitions

  @Test(arguments: [
    Change(.pending), Change(.pending, charged: true),
    Change(.pending, history: .refused(since: 1), retryGroup: 4),
    Change(.waiting(.dependency)), Change(.waiting(.time(Pause(since: 0, until: 12)))),
    Change(.waiting(.kind), charged: true),
    Change(.waiting(.organisation), history: .refused(since: 1), retryGroup: 6),
    Change(.parked, rejection: [1]),
    Change(.parked),
  ])
  func aTransitionSetsStateChargeAndRejectionAndEndsTheLease(_ transition: Change) throws {
    try table.fill(2)
    _ = try table.take(of: tag(1), holder: [1], until: 9, maximumSize: 99) { _ in 2 }
    try table.transition(1, transition)
    let row = try #require(try table.find(queueRow(0).item))
    expect(row.state, equals: transition.state)
    expect(row.attempts, equals: (transition.isCharged ? 1 : 0))
    expect(row.history, equals: transition.history ?? .clean)
    expect(row.rejection, equals: transition.rejection)
    expect(row.retryGroup, equals: transition.retryGroup ?? 0)
    try expect(table.leased(by: [1]), equals: [2])
    let lease = try table.database.first("SELECT lease, lease_ms FROM queue WHERE seq = 1") {
      (row) throws(Failure) in row.isNull(0) && row.int(1) == 0
    }
    expect(lease, equals: true)
  }

  @Test func chargesAddUpAndTheRetryGroupStaysUntilItIsParked() throws {
    try table.fill(1)
    try table.transition(1, .pending, charged: true, retryGroup: 3)
    try table.transition(1, .pending, charged: true)
    try table.transition(1, .waiting(.organisation), history: .refused(since: 1))
    var row = try #require(try table.find(queueRow(0).item))
    expect((row.attempts, row.history, row.retryGroup) == (2, .refused(since: 1), 3))
    try table.transition(1, .parked, rejection: [5])
    row = try #require(try table.find(queueRow(0).item))
    // What was refused is not stored: that was no attempt.
    expect((row.attempts, row.history, row.retryGroup) == (2, .refused(since: 1), .noGroup))
    // A rejection belongs to a parked item only.
    try table.transition(1, .pending)
    try expect(table.find(queueRow(0).item)?.rejection, equals: nil)
  }

  // MARK: A new body

  @Test func aNewBodyClearsWhatBelongedToTheOldOneAndKeepsTheAttempts() throws {
    try table.fill(2)
    try table.transition(1, .waiting(.organisation), charged: true, history: .alone(failures: 5))
    try table.transition(1, .parked, rejection: [1])
    try table.assign(1, retryGroup: 6)
    try rewrite { row in
      (row.batchKey, row.body, row.size) = (tag(5), [9, 9], 2)
      row.beginAnew()
    }
    let row = try #require(try table.find(queueRow(0).item))
    expect(row.state, equals: .pending)
    expect((row.batchKey, row.body) == (tag(5), [9, 9]))
    expect((row.size, row.attempts, row.history, row.retryGroup) == (2, 1, .clean, .noGroup))
    expect(row.rejection, equals: nil)
  }

  @Test(
    arguments: [
      (WaitReason.organisation, ItemState.waiting(.organisation)), (.dependency, .pending),
      (.time(Pause(since: 0, until: 5)), .pending), (.kind, .pending),
    ] as [(WaitReason, ItemState)])
  func onlyAnItemThatWaitsForItsOrganisationGoesOnWaiting(
    _ reason: WaitReason, _ expected: ItemState
  ) throws {
    try table.fill(1)
    try table.transition(1, .waiting(reason))
    try rewrite { row in row.beginAnew() }
    try expect(table.state(0), equals: expected)
  }

  @Test func anItemThatIsBeingSentKeepsItsLeaseThroughAnEdit() throws {
    try table.fill(1)
    _ = try table.take(of: tag(1), holder: [1], until: 9, maximumSize: 99) { _ in 2 }
    try expect(table.edited(by: [1]), equals: [])
    try rewrite { row in
      row.isEdited = true
      row.beginAnew()
    }
    try expect(table.state(0), equals: .sending)
    try expect(table.leased(by: [1]), equals: [1])
    try expect(table.edited(by: [1]), equals: [1])
    try expect(table.edited(by: [2]), equals: [])
    // The next request has the new content.
    try table.transition(1, .pending, charged: true)
    _ = try table.take(of: tag(1), holder: [1], until: 9, maximumSize: 99) { _ in 2 }
    try expect(table.edited(by: [1]), equals: [])
  }

  /// What a row says of the old content stays, if the content stays the same: the body has another mark.
  @Test(
    arguments: [
      Change(.pending, charged: true, history: .alone(failures: 3), retryGroup: 4),
      Change(.waiting(.time(Pause(since: 0, until: 7)))),
      Change(.waiting(.blocked(Pause(since: 0, until: 8))), history: .alone(failures: 9)),
      Change(.waiting(.organisation), history: .refused(since: 2)),
      Change(.parked, rejection: [1]),
    ] as [Change])
  func aRowThatIsWrittenAsItIsStaysTheSame(_ transition: Change) throws {
    try table.fill(1)
    try table.transition(1, transition)
    let before = try #require(try table.find(queueRow(0).item))
    try rewrite { row in row.body = [7] }
    let after = try #require(try table.find(queueRow(0).item))
    expect(after.body, equals: [7])
    expect((after.state, after.pause) == (before.state, before.pause))
    expect(
      (after.attempts, after.history, after.retryGroup) == (
        before.attempts, before.history, before.retryGroup
      ))
    expect(after.rejection, equals: before.rejection)
    // An item that the user asked to try before its pause has ended keeps the end.
    if case .waiting(.blocked) = transition.state {
      _ = try table.retry(queueRow(0).item, of: tag(1))
      try rewrite { row in row.body = [8] }
      try expect(table.find(queueRow(0).item)?.pause, equals: Pause(since: 0, until: 8))
    }
  }

  private func rewrite(_ change: (QueueRow) -> Void) throws {
    let row = try #require(try table.find(queueRow(0).item))
    change(row)
    try table.write(row)
  }

  // MARK: Retry

  @Test func aRetryIsForTheOwnersParkedItemsOnly() throws {
    for number in 0..<4 { _ = try table.insert(queueRow(number, owner: number == 2 ? 5 : 1)) }
    for sequence in 1...3 { try table.transition(Int64(sequence), .parked, rejection: [1]) }
    try table.transition(4, .waiting(.kind))
    try expect(table.retry(nil, of: tag(1)), equals: 2)
    try expect(table.state(2), equals: .parked)
    try expect(table.state(3), equals: .waiting(.kind))
    try expect(table.find(queueRow(0).item)?.rejection, equals: nil)
  }

  @Test(
    arguments: [
      (WaitReason.organisation, 1), (.time(Pause(since: 0, until: 5)), 1), (.kind, 1),
      (.dependency, 0),
    ] as [(WaitReason, Int)])
  func oneItemIsRetriedUnlessItWaitsForAParent(_ reason: WaitReason, _ retried: Int) throws {
    try table.fill(1)
    try table.transition(1, .waiting(reason), history: .refused(since: 1))
    try expect(table.retry(queueRow(0).item, of: tag(9)), equals: 0)
    try expect(table.retry(queueRow(0).item, of: tag(1)), equals: retried)
    try expect(table.state(0), equals: (retried == 1 ? .pending : .waiting(.dependency)))
    try expect(table.find(queueRow(0).item)?.history, equals: FailureHistory(Int64(retried - 1)))
  }

  @Test func aParkedItemIsFoundByTheBeginningOfItsTag() throws {
    let row = queueRow(0)
    row.item = tag(3) + [1, 2, 3, 4]
    _ = try table.insert(row)
    try expect(table.findParked(tag(3), of: tag(1)), equals: nil)
    try table.transition(1, .parked)
    try expect(table.findParked(tag(3), of: tag(1)), equals: row.item)
    try expect(table.findParked(tag(3), of: tag(2)), equals: nil)
    try expect(table.findParked(tag(4), of: tag(1)), equals: nil)
  }

  @Test func aRetriedChildWaitsForItsParent() throws {
    try table.fill(2)
    try table.dependencies.add(queueRow(0).item, on: queueRow(1).item)
    try table.transition(1, .parked)
    try expect(table.retry(nil, of: tag(1)), equals: 1)
    try expect(table.state(0), equals: .waiting(.dependency))
  }
}
