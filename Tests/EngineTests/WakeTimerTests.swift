import Base
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct WakeTimerTests {
  /// Counts how often the time is derived.
  private final class Finder {
    var count = 0
    var result: Int64?

    init(_ result: Int64?) { self.result = result }
  }

  private func ask(_ rig: Rig, _ finder: Finder) throws -> Int64? {
    try rig.wakeTimer.wakeIn(.all, rig.now) { (_) throws(Failure) in
      finder.count += 1
      return finder.result
    }
  }

  @Test func theTimeIsKeptAndCountsDown() throws {
    // Given
    let rig = try Rig.atHome()
    let finder = Finder(10_000)
    try expect(ask(rig, finder), equals: 10_000)
    // When
    rig.advance(4000)
    // Then
    try expect(ask(rig, finder), equals: 6000)
    expect(finder.count, equals: 1)
  }

  @Test func nothingDueByTimeAloneIsKeptToo() throws {
    let rig = try Rig.atHome()
    let finder = Finder(nil)
    try expect(ask(rig, finder), equals: nil)
    rig.advance(1_000_000)
    try expect(ask(rig, finder), equals: nil)
    expect(finder.count, equals: 1)
  }

  @Test func whatWasDueStaysDueUntilItIsForgotten() throws {
    // Given
    let rig = try Rig.atHome()
    let finder = Finder(0)
    try expect(ask(rig, finder), equals: 0)
    // When, then
    rig.advance(60_000)
    try expect(ask(rig, finder), equals: 0)
    expect(finder.count, equals: 1)
    rig.wakeTimer.beginLook(.news)
    _ = try ask(rig, finder)
    expect(finder.count, equals: 1)
    rig.wakeTimer.beginLook(.all)
    _ = try ask(rig, finder)
    expect(finder.count, equals: 2)
  }

  /// What happens between two questions, and whether the second derives the time anew.
  @Test(arguments: [
    ("nothing", false), ("49 ms of the device's clock", false), ("50 ms of it", true),
    ("the device's clock was set back", true), ("a change in memory", true),
    ("a write here", true), ("a write by another process", true), ("the keys", true),
    ("the time itself", true), ("another boot's clock", true),
  ])
  func theKnownTimeIsValidWhileNothingItDependsOnChanges(_ change: String, _ isAnew: Bool) throws {
    // Given
    let rig = try Rig.atHome()
    let other = try Database(path: rig.folder.path + "/holdfast.db", .full)
    let finder = Finder(10_000)
    _ = try ask(rig, finder)
    // When
    switch change {
    case "49 ms of the device's clock": rig.advance(0, wallMS: 49)
    case "50 ms of it": rig.advance(0, wallMS: 50)
    case "the device's clock was set back": rig.advance(1000, wallMS: -1000)
    case "a change in memory": rig.core.revision.advance()
    case "a write here": try rig.core.meta.set(.uploads, .int(7))
    case "a write by another process": try MetaTable(other).set(.uploads, .int(8))
    case "the keys": rig.core.keyRing.forget()
    case "the time itself": rig.advance(10_000)
    case "another boot's clock": rig.advance(-1000)
    default: break
    }
    _ = try ask(rig, finder)
    // Then
    expect(finder.count, equals: (isAnew ? 2 : 1))
  }

  @Test func nothingIsKeptWhenAnotherProcessWroteWhileItWasDerived() throws {
    // Given
    let rig = try Rig.atHome()
    let other = try Database(path: rig.folder.path + "/holdfast.db", .full)
    // When
    _ = try rig.wakeTimer.wakeIn(.all, rig.now) { (_) throws(Failure) in
      try MetaTable(other).set(.uploads, .int(9))
      return 10_000
    }
    // Then
    let finder = Finder(10_000)
    _ = try ask(rig, finder)
    expect(finder.count, equals: 1)
  }

  @Test func aTimeClearlyBeforeThePromisedOneAndThePromisedOneAreDue() throws {
    // Given: before the first call only work that is due counts
    let rig = try Rig.atHome()
    let timer = rig.wakeTimer
    expect(timer.isDue(.all, 0, rig.now))
    expect(!timer.isDue(.all, 1, rig.now))
    // When a call promised 10 s
    timer.promise(.all, 10_000, rig.now)
    // Then
    for (wake, isDue) in [(0, true), (9949, true), (9950, false), (10_000, false)] {
      expect(timer.isDue(.all, Int64(wake), rig.now), equals: isDue, "\(wake) ms")
    }
    rig.advance(9000)
    expect(timer.isDue(.all, 900, rig.now))
    expect(!timer.isDue(.all, 1000, rig.now))
    expect(!timer.isDue(.all, nil, rig.now))
    expect(!timer.isDue(.news, 900, rig.now))
    // And when that time has come, whatever is computed anew
    rig.advance(1000)
    expect(timer.isDue(.all, 10_000, rig.now))
    expect(timer.isDue(.all, nil, rig.now))
    // And after a call that promised nothing, every time is due
    timer.promise(.all, nil, rig.now)
    expect(timer.isDue(.all, 86_400_000, rig.now))
  }

  @Test func aCallThatOnlyAddsWorkKeepsWhatWasDue() throws {
    // Given
    let rig = try Rig.atHome()
    let finder = Finder(0)
    expect(rig.wakeTimer.knownDue().isEmpty)
    _ = try ask(rig, finder)
    expect(rig.wakeTimer.knownDue() == [.all])
    // When the call writes
    try rig.core.meta.set(.uploads, .int(7))
    rig.core.revision.advance()
    expect(rig.wakeTimer.knownDue().isEmpty)
    rig.wakeTimer.keepDue([.all])
    // Then
    expect(rig.wakeTimer.knownDue() == [.all])
    try expect(ask(rig, finder), equals: 0)
    expect(finder.count, equals: 1)
  }

  @Test func aTimeInTheFutureIsNotKnownToBeDue() throws {
    let rig = try Rig.atHome()
    _ = try ask(rig, Finder(1))
    expect(rig.wakeTimer.knownDue().isEmpty)
  }
}
