import Base
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct SyncRunReporterTests {
  /// What is left in the queue while a run has sent two items, and whether the run ends.
  @Test(arguments: [
    ("nothing", true), ("pending", false), ("sending", false), ("time", false),
    ("organisation", true), ("dependency", true), ("kind", true), ("parked", true),
  ])
  func aRunEndsWhenNothingCanBeSent(_ left: String, _ ends: Bool) throws {
    // Given
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.core.syncRuns.count(
      of: owner, sent: 2, parked: 0, now: try rig.core.steadyToStore(rig.now))
    if left != "nothing" {
      try rig.add(id(1))
      let sequence = try #require(try rig.row(id(1))).sequence
      switch left {
      case "sending": _ = try rig.upload()
      case "time":
        try rig.core.queue.transition(
          sequence, .waiting(.time(Pause(since: 0, until: 9_000_000_000_000))))
      case "organisation": try rig.core.queue.transition(sequence, .waiting(.organisation))
      case "dependency": try rig.core.queue.transition(sequence, .waiting(.dependency))
      case "kind": try rig.core.queue.transition(sequence, .waiting(.kind))
      case "parked": try rig.core.queue.transition(sequence, .parked)
      default: break
      }
    }
    rig.advance(5000)
    // When
    try rig.syncRuns.endIfDone(owner, rig.now)
    // Then
    try expect(rig.takeEventTypes(), equals: (ends ? ["sync_completed"] : []))
    try expect(rig.core.syncRuns.find(of: owner) == nil, equals: ends)
    try expect(rig.core.meta.int(.lastSyncRun), equals: (ends ? rig.now.wallMS : nil))
  }

  @Test func aRunThatDidNothingIsNotTold() throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.syncRuns.endIfDone(owner, rig.now)
    try rig.core.syncRuns.start(of: owner, now: try rig.core.steadyToStore(rig.now))
    try rig.syncRuns.endIfDone(owner, rig.now)
    try expect(rig.takeEvents().isEmpty)
  }

  @Test func aClockThatWasSetBackGivesNoNegativeDuration() throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.core.syncRuns.count(
      of: owner, sent: 1, parked: 0, now: try rig.core.steadyToStore(rig.now) + 1000)
    try rig.syncRuns.endIfDone(owner, rig.now)
    try expect(rig.takeEvents().first?.int("duration_ms"), equals: 0)
  }
}
