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
        try rig.core.queue.transition(sequence, .waiting(.time(until: 9_000_000_000_000)))
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

  @Test func theEventCountsTheRun() throws {
    // Given a run that sent two and parked one; one more item waits
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.core.syncRuns.count(
      of: owner, sent: 2, parked: 1, now: try rig.core.steadyToStore(rig.now))
    try rig.add(id(1))
    try rig.core.queue.transition(
      try #require(try rig.row(id(1))).sequence, .waiting(.organisation))
    rig.advance(5000)
    // When
    try rig.syncRuns.endIfDone(owner, rig.now)
    // Then
    let event = try #require(try rig.takeEvents().first)
    expect(event.int("sent"), equals: 2)
    expect(event.int("parked"), equals: 1)
    expect(event.int("waiting"), equals: 1)
    expect(event.int("duration_ms"), equals: 5000)
    expect(event["message"]?.string("text")?.isEmpty, equals: false)
  }

  @Test func aRunThatDidNothingIsNotTold() throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.syncRuns.endIfDone(owner, rig.now)
    try rig.core.syncRuns.start(of: owner, now: try rig.core.steadyToStore(rig.now))
    try rig.syncRuns.endIfDone(owner, rig.now)
    try expect(rig.takeEvents().isEmpty)
  }

  @Test func aRunEndsOnce() throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.core.syncRuns.count(of: owner, sent: 1, parked: 0, now: 1)
    for _ in 0..<2 { try rig.syncRuns.endIfDone(owner, rig.now) }
    try expect(rig.takeEvents().count, equals: 1)
  }

  @Test func aClockThatWasSetBackGivesNoNegativeDuration() throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.core.syncRuns.count(
      of: owner, sent: 1, parked: 0, now: try rig.core.steadyToStore(rig.now) + 1000)
    try rig.syncRuns.endIfDone(owner, rig.now)
    try expect(rig.takeEvents().first?.int("duration_ms"), equals: 0)
  }

  @Test func progressIsToldWhileARunLasts() throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    try rig.syncRuns.emitProgress(owner, rig.now)
    try expect(rig.takeEvents().isEmpty)
    try rig.core.syncRuns.count(of: owner, sent: 3, parked: 1, now: 1)
    try rig.add(id(1))
    try rig.syncRuns.emitProgress(owner, rig.now)
    let event = try #require(try rig.takeEvents().first)
    expect(event.string("type"), equals: "sync")
    expect(event.int("sent"), equals: 3)
    expect(event.int("left"), equals: 1)
    expect(event.bool("running"), equals: true)
  }

  /// How many items each of two uploads has stored, and how many of their ids the event names.
  @Test(arguments: [(250, 500, false), (300, 500, true)])
  func anEventNamesAtMost500Items(_ each: Int, _ named: Int, _ isTruncated: Bool) throws {
    let rig = try Rig.atHome()
    let owner = try rig.session.owner
    for first in [0, each] {
      try rig.syncRuns.countStored((first..<first + each).map { id($0) }, of: owner, rig.now)
    }
    try rig.syncRuns.endIfDone(owner, rig.now)
    let event = try #require(try rig.takeEvents().first)
    expect(event.int("sent"), equals: Int64(2 * each))
    expect(event["ids"]?.count, equals: named)
    expect(event["ids"]?.elements.first?.uuid, equals: id(0))
    expect(event.bool("ids_truncated"), equals: isTruncated)
  }
}
