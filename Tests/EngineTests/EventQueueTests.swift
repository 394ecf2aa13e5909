import Base
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct EventQueueTests {
  private func texts(_ events: [JSON]) -> [String] {
    events.map { ($0.string("type") ?? "") + (($0.int("n")).map { " \($0)" } ?? "") }
  }

  private func event(_ type: StaticCString, _ number: Int64) -> JSON {
    ["type": JSON(type), "n": .int(number)]
  }

  private func ready() throws -> Rig {
    let rig = try Rig()
    _ = try rig.core.keyRing.state(for: rig.core.database)
    return rig
  }

  @Test func bothKindsComeInTheOrderInWhichTheyWereEmitted() throws {
    // Given
    let rig = try ready()
    try rig.events.emit(event("contact", 1))
    try rig.events.emitDurable(event("item_parked", 2), owner: nil)
    try rig.events.emit(event("contact", 3))
    try rig.events.emitDurable(event("item_parked", 4), owner: nil)
    // When
    let taken = try rig.events.takeAll()
    // Then
    expect(texts(taken), equals: ["contact 1", "item_parked 2", "contact 3", "item_parked 4"])
    let numbers = taken.compactMap { $0.int("seq") }
    expect(numbers == numbers.sorted() && Set(numbers).count == 4)
  }

  @Test func transientEventsAreNumberedWithoutACommitOfTheirOwn() throws {
    // Given
    let rig = try ready()
    try rig.events.emitDurable(event("item_parked", 1), owner: nil)
    let before = rig.core.database.changes
    // When
    for number in 2...20 { try rig.events.emit(event("contact", Int64(number))) }
    // Then
    expect(rig.core.database.changes, equals: before)
    let numbers = try rig.events.takeAll().compactMap { $0.int("seq") }
    expect(numbers == numbers.sorted() && Set(numbers).count == 20)
  }

  @Test func eachHandleSeesIncreasingNumbersWhileSeveralEmit() throws {
    // Given two handles on a folder
    let rig = try ready()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.core.keyRing.state(for: other.core.database)
    var state: UInt64 = 20
    func below(_ bound: UInt64) -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return (state >> 33) % bound
    }
    var seen: [Int64] = []
    var durable: Set<Int64> = []
    // When both emit both kinds, and one is polled from time to time
    for number in 0..<300 {
      let handle = below(2) == 0 ? rig : other
      if below(3) == 0 {
        try handle.events.emitDurable(event("item_parked", Int64(number)), owner: nil)
        durable.insert(Int64(number))
      } else {
        try handle.events.emit(event("contact", Int64(number)))
      }
      guard below(4) == 0 || number == 299 else { continue }
      for each in try rig.events.take(limit: 200, onlyNew: true) {
        seen.append(each.int("seq") ?? 0)
        if each.string("type") == "item_parked" { durable.remove(each.int("n") ?? -1) }
      }
      rig.events.confirm()
    }
    // Then it has seen every durable event, in the order of the numbers
    expect(durable.isEmpty)
    expect(zip(seen, seen.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test func pagesFollowEachOtherAndThenBeginAgain() throws {
    // Given more events than a poll takes
    let rig = try ready()
    for number in 1...3 {
      try rig.events.emitDurable(event("item_parked", Int64(number)), owner: nil)
    }
    func page() throws -> [String] {
      let taken = texts(try rig.events.take(limit: 2, onlyNew: false))
      rig.events.confirm()
      return taken
    }
    // When, then
    try expect(page(), equals: ["item_parked 1", "item_parked 2"])
    try expect(page(), equals: ["item_parked 3"])
    try expect(page(), equals: ["item_parked 1", "item_parked 2"])
  }

  @Test func whatEverybodyGetsIsNotNewToTheNextUser() throws {
    let rig = try ready()
    try rig.events.emitDurable(event("storage_recovered", 1), owner: nil)
    _ = try rig.events.takeAll()
    rig.events.confirm()
    try expect(!rig.events.hasUndelivered())
    try rig.signIn()
    try expect(!rig.events.hasUndelivered())
  }

  /// With another main file, what this handle has handed out says nothing about the events there.
  @Test(arguments: [SessionStore.Scope.keylessFiles, .damagedFile, .file])
  func inAnotherFileEveryEventIsNew(_ scope: SessionStore.Scope) throws {
    let rig = try ready()
    try rig.events.emitDurable(event("item_parked", 1), owner: nil)
    _ = try rig.events.takeAll()
    rig.events.confirm()
    try expect(rig.events.take(limit: 10, onlyNew: true).isEmpty)
    rig.sessions.reset(scope)
    _ = try rig.core.keyRing.state(for: rig.core.database)
    expect(texts(try rig.events.take(limit: 10, onlyNew: true)), equals: ["item_parked 1"])
  }

  @Test func aPollIsUndoneOnce() throws {
    // Given a poll that failed
    let rig = try ready()
    try rig.events.emit(event("contact", 1))
    _ = try rig.events.takeAll()
    rig.events.restore()
    // When the same call emits another event, and its reply is lost too
    try rig.events.emit(event("contact", 2))
    rig.events.restore()
    // Then both are there
    expect(texts(try rig.events.takeAll()), equals: ["contact 1", "contact 2"])
  }

  @Test func transientEventsComeOnceAndDurableOnesUntilTheyAreAcknowledged() throws {
    // Given
    let rig = try ready()
    try rig.events.emit(event("contact", 1))
    try rig.events.emitDurable(event("item_parked", 2), owner: nil)
    let first = try rig.events.takeAll()
    rig.events.confirm()
    // When, then
    try expect(!rig.events.hasUndelivered())
    expect(texts(try rig.events.takeAll()), equals: ["item_parked 2"])
    try rig.events.acknowledge(upTo: try #require(first.last?.int("seq")))
    try expect(rig.events.takeAll().isEmpty)
  }

  @Test func anotherProcessHasADurableEventThatThisOneHandedOut() throws {
    let rig = try ready()
    try rig.events.emitDurable(event("item_parked", 1), owner: nil)
    _ = try rig.events.takeAll()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.core.keyRing.state(for: other.core.database)
    try expect(other.events.hasUndelivered())
  }

  @Test func aNewerDecisionReplacesOneThatWasNotHandedOut() throws {
    let rig = try ready()
    for number in 1...2 { try rig.events.emit(event("decision", Int64(number))) }
    try rig.events.emit(event("contact", 3))
    expect(texts(try rig.events.takeAll()), equals: ["decision 2", "contact 3"])
  }

  @Test func discardingConcernsOneTransientType() throws {
    let rig = try ready()
    try rig.events.emit(event("contact", 1))
    try rig.events.emit(event("decision", 2))
    try rig.events.emitDurable(event("contact", 3), owner: nil)
    expect(rig.events.holds("contact"))
    rig.events.discard("contact")
    expect(!rig.events.holds("contact"))
    expect(texts(try rig.events.takeAll()), equals: ["decision 2", "contact 3"])
  }

  @Test func aPollThatFailedIsUndoneAndOneThatArrivedIsNot() throws {
    // Given
    let rig = try ready()
    try rig.events.emit(event("contact", 1))
    try rig.events.emitDurable(event("item_parked", 2), owner: nil)
    _ = try rig.events.takeAll()
    // When
    rig.events.restore()
    // Then
    try expect(rig.events.hasUndelivered())
    expect(texts(try rig.events.takeAll()), equals: ["contact 1", "item_parked 2"])
    // When
    rig.events.confirm()
    rig.events.restore()
    // Then
    try expect(!rig.events.hasUndelivered())
  }

  @Test func durableEventsAreForTheirOwnerOrForEverybody() throws {
    // Given
    let rig = try Rig()
    try rig.signIn(alice)
    let keys = try rig.core.keys()
    try rig.events.emitDurable(event("item_parked", 1), owner: keys.userTag(alice))
    try rig.events.emitDurable(event("item_parked", 2), owner: keys.userTag(bob))
    try rig.events.emitDurable(event("session_ended", 3), owner: nil)
    // When, then
    expect(texts(try rig.events.takeAll()), equals: ["item_parked 1", "session_ended 3"])
    // Acknowledging leaves the other user's event.
    try rig.events.acknowledge(upTo: 1000)
    try rig.signIn(bob)
    expect(texts(try rig.events.takeAll()), equals: ["item_parked 2"])
  }

  @Test func durableEventsAreSealedAndWaitForTheKeys() throws {
    // Given
    let rig = try ready()
    try rig.events.emitDurable(event("item_parked", 1), owner: nil)
    let stored = try rig.core.durableEvents.page(
      for: nil, after: EventCursor(), limit: 10, size: 1000
    ).events
    expect(!String(decoding: stored[0].1, as: UTF8.self).contains("item_parked"))
    // When
    rig.core.keyRing.forget()
    // Then
    try expect(!rig.events.hasUndelivered())
    try expect(rig.events.takeAll().isEmpty)
    try expect(
      refusal {
        rig.keyStore.refusal = .locked; try rig.events.emitDurable([:], owner: nil)
      }, equals: .keyStoreLocked)
  }

  @Test func anEventThatDoesNotOpenIsSkipped() throws {
    let rig = try ready()
    try rig.events.emitDurable(event("item_parked", 1), owner: nil)
    try rig.core.durableEvents.add(50, owner: nil, sealed: [1, 2, 3])
    expect(texts(try rig.events.takeAll()), equals: ["item_parked 1"])
    try expect(!rig.events.hasUndelivered())
  }

  @Test func progressIsToldAtMostEvery200Milliseconds() throws {
    // Given
    let rig = try ready()
    let core = rig.core
    func emit() throws {
      try rig.events.emitProgress(core.clock.now()) { event("sync_progress", 1) }
    }
    // When
    try emit()
    rig.advance(199)
    try emit()
    try expect(rig.takeEvents().count, equals: 1)
    rig.advance(1)
    try emit()
    try expect(rig.takeEvents().count, equals: 1)
    // Nothing to tell does not count.
    rig.advance(200)
    try rig.events.emitProgress(rig.now) { nil }
    try emit()
    try expect(rig.takeEvents().count, equals: 1)
  }

  @Test func aPollTakesAtMost200DurableEvents() throws {
    let rig = try ready()
    try rig.core.database.transaction { () throws(Failure) in
      for number in 0..<201 {
        try rig.events.emitDurable(event("item_parked", Int64(number)), owner: nil)
      }
    }
    try expect(rig.takeEvents().count, equals: 200)
    try expect(rig.events.hasUndelivered())
    try expect(rig.takeEvents().count, equals: 1)
  }
}
