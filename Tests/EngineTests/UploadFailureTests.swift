import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

/// Uploads that fail for a reason which may be one of their items, or of no item.
@Suite struct UploadFailureTests {
  private static func code(_ code: String) -> String { #"{"code":"\#(code)","message":"m"}"# }

  /// Let the service store an item.
  private func store(_ rig: Rig, _ number: Int) throws {
    try rig.add(id(number))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, rows(id(number))), rig.now)
    try expect(rig.state(id(number)), equals: "erased")
  }

  private func fail(_ rig: Rig, _ status: Int, _ body: String) throws {
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(status, body), rig.now)
  }

  @Test func whileOthersGetThroughABatchIsHalvedAtOnceAndTheItemWaitsAlone() throws {
    // Given a service that has just stored an item, and an item that makes uploads fail
    let rig = try Rig.atHome()
    try store(rig, 9)
    for number in 1...2 { try rig.add(id(number)) }
    // When
    try fail(rig, 500, Self.code("XX000"))
    // Then
    let halves = [2, 4].map { "pending, attempts 1, group \($0)" }
    try expect((1...2).map { try rig.state(id($0)) }, equals: halves)
    try fail(rig, 500, Self.code("XX000"))
    try expect(rig.state(id(1)).hasPrefix("waits for time, attempts 2"))
    try expect(rig.row(id(1))?.trouble, equals: 1)
    // and the other does not wait
    try expect(rig.state(id(2)), equals: halves[1])
  }

  @Test func afterThreeFailuresInARowAllWaitAndOneProbes() throws {
    // Given a service that stored an item and then fails
    let rig = try Rig.atHome()
    try store(rig, 9)
    for number in 1...8 { try rig.add(id(number)) }
    for _ in 1...3 { try fail(rig, 500, Self.code("XX000")) }
    // Then all wait
    try expect(!rig.core.queue.hasPending(of: try rig.session.owner))
    // and then one is sent
    try rig.core.queue.endOwnWaits(of: try rig.session.owner)
    let probe = try rig.upload()
    expect(probe.items.count, equals: 1)
    // When the service stores it, then the next upload has more
    try rig.settlement.finish(
      probe, isCurrent: true, try response(201, rows(probe.items[0].id)), rig.now)
    try expect(rig.upload().items.count > 1)
  }

  @Test func aBatchKeyThatFailsLimitsNoOther() throws {
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    let batch = try rig.upload()
    try rig.settlement.finish(
      batch, isCurrent: true, try response(404, Self.code("42P01")), rig.now)
    expect(rig.uploads.maxItems(of: batch.key, isProbing: false), equals: 1)
    expect(rig.uploads.maxItems(of: [7], isProbing: false), equals: 500)
    expect(rig.uploads.maxItems(of: [7], isProbing: true), equals: 1)
  }

  /// The failed attempts of an item before this one, the answer, its state, how many items are asked
  /// about, and whether uploads pause.
  @Test(arguments: [
    (1, 503, "<html>", "pending, attempts 2", 0, true),
    (2, 503, "<html>", "sending, attempts 2", 1, false),
    (2, 200, "<html>", "sending, attempts 2", 1, false),
    (2, 429, "", "sending, attempts 2", 1, false),
    (1, 503, code("PGRST001"), "pending, attempts 2", 0, true),
    (2, 503, code("PGRST001"), "waits for time, attempts 3, alone 1, group 2", 0, false),
  ])
  func anAnswerThatOftenPassesIsTheItemsFromTheThirdOn(
    _ attempts: Int, _ status: Int, _ body: String, _ state: String, _ asked: Int, _ pauses: Bool
  ) throws {
    let rig = try Rig.atHome()
    try store(rig, 9)
    try rig.add(id(1))
    for _ in 0..<attempts {
      try rig.core.queue.transition(
        try #require(try rig.row(id(1))).sequence, .pending(charged: true))
    }
    try fail(rig, status, body)
    try expect(rig.state(id(1)), equals: state)
    expect(rig.uploads.readBacks.reduce(0) { $0 + $1.items.count }, equals: asked)
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0, equals: pauses)
  }

  @Test func anItemThatWasSetAsideMakesNoOtherWait() throws {
    // Given an item that was found to be at fault, in an earlier process
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    try rig.fail(id(1), alone: 1)
    // When it fails again
    let batch = try rig.upload()
    expect(batch.items.map { $0.id }, equals: [id(1)])
    try rig.settlement.finish(
      batch, isCurrent: true, try response(503, Self.code("PGRST001")), rig.now)
    // Then it alone waits
    try expect(rig.state(id(1)), equals: "waits for time, attempts 1, alone 2, group 2")
    try expect(rig.state(id(2)), equals: "pending")
    try expect(rig.pauses.leftMS(.upload, rig.now) <= 0)
    // unless the service asks for a pause
    try rig.core.queue.endOwnWaits(of: try rig.session.owner)
    let other = try rig.upload()
    try rig.settlement.finish(
      other, isCurrent: true,
      try response(503, Self.code("PGRST001"), retryAfter: "60"), rig.now)
    try expect(rig.pauses.leftMS(.upload, rig.now) >= 60_000)
  }

  @Test func anAnswerOfAnotherSessionAsksNothing() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.fail(id(1), alone: 1)
    try rig.settlement.finish(
      try rig.upload(), isCurrent: false, try response(503, "<html>"), rig.now)
    expect(rig.uploads.readBacks.isEmpty)
    try expect(rig.pauses.leftMS(.upload, rig.now) > 0)
  }

  @Test func aStatementThatTakesTooLongHalvesAFewTimesAndThenTheUploads() throws {
    // Given a server that is too slow for every upload
    let rig = try Rig.atHome()
    for number in 1...100 { try rig.add(id(number)) }
    var sizes: [Int] = []
    while try rig.core.queue.hasPending(of: try rig.session.owner), sizes.count < 99 {
      let batch = try rig.upload()
      sizes.append(batch.items.count)
      try rig.settlement.finish(
        batch, isCurrent: true, try response(500, Self.code("57014")), rig.now)
    }
    // Then all wait after a few requests
    expect(sizes, equals: [100, 50, 50, 25, 12, 6, 3, 1])
  }
}
