import Base
import Policy
import Store
import Supabase
import Testing

@testable import Engine

/// Uploads that fail for a reason which may be one of their items, or of no item (issue 14).
@Suite struct UploadDoubtTests {
  private static func code(_ code: String) -> String { #"{"code":"\#(code)","message":"m"}"# }

  /// Let the service store an item.
  private func store(_ rig: Rig, _ number: Int) throws {
    try rig.add(id(number))
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(201, rows(id(number))), rig.now)
    #expect(try rig.state(id(number)) == "erased")
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
    #expect(try (1...2).map { try rig.state(id($0)) } == halves)
    try fail(rig, 500, Self.code("XX000"))
    #expect(try rig.state(id(1)).hasPrefix("waits for time, attempts 2"))
    #expect(try rig.row(id(1))?.blocks == 1)
    // and the other does not wait
    #expect(try rig.state(id(2)) == halves[1])
  }

  @Test func afterThreeFailuresInARowAllWaitAndOneProbes() throws {
    // Given a service that stored an item and then fails
    let rig = try Rig.atHome()
    try store(rig, 9)
    for number in 1...8 { try rig.add(id(number)) }
    for _ in 1...3 { try fail(rig, 500, Self.code("XX000")) }
    // Then all wait
    #expect(try !rig.core.queue.hasPending(of: try rig.session.owner))
    // and then one is sent
    try rig.core.queue.endOwnWaits(of: try rig.session.owner)
    let probe = try rig.upload()
    #expect(probe.items.count == 1)
    // When the service stores it, then the next upload has more
    try rig.settlement.finish(
      probe, isCurrent: true, try response(201, rows(probe.items[0].id)), rig.now)
    #expect(try rig.upload().items.count > 1)
  }

  @Test func aBatchKeyThatFailsLimitsNoOther() throws {
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    let batch = try rig.upload()
    try rig.settlement.finish(
      batch, isCurrent: true, try response(404, Self.code("42P01")), rig.now)
    #expect(rig.uploads.maxItems(of: batch.key, isProbing: false) == 1)
    #expect(rig.uploads.maxItems(of: [7], isProbing: false) == 500)
    #expect(rig.uploads.maxItems(of: [7], isProbing: true) == 1)
  }

  /// The failed attempts of an item before this one, the answer, its state, how many items are asked
  /// about, and whether uploads pause.
  @Test(arguments: [
    (1, 503, "<html>", "pending, attempts 2", 0, true),
    (2, 503, "<html>", "sending, attempts 2", 1, false),
    (2, 200, "<html>", "sending, attempts 2", 1, false),
    (2, 429, "", "sending, attempts 2", 1, false),
    (1, 503, code("PGRST001"), "pending, attempts 2", 0, true),
    (2, 503, code("PGRST001"), "waits for time, attempts 3, group 2", 0, false),
  ])
  func anAnswerThatOftenPassesIsTheItemsFromTheThirdOn(
    _ attempts: Int, _ status: Int, _ body: String, _ state: String, _ asked: Int, _ pauses: Bool
  ) throws {
    let rig = try Rig.atHome()
    try store(rig, 9)
    try rig.add(id(1))
    for _ in 0..<attempts {
      try rig.core.queue.transition(
        try #require(try rig.row(id(1))).sequence, .pending(charge: .attempt))
    }
    try fail(rig, status, body)
    #expect(try rig.state(id(1)) == state)
    #expect(rig.uploads.readBacks.reduce(0) { $0 + $1.items.count } == asked)
    #expect(try (rig.pauses.leftMS(.upload, rig.now) > 0) == pauses)
  }

  @Test func anItemThatWasSetAsideMakesNoOtherWait() throws {
    // Given an item that was found to be at fault, in an earlier process
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    let row = try #require(try rig.row(id(1)))
    try rig.core.queue.setBlocks(row.sequence, 1)
    // When it fails again
    let batch = try rig.upload()
    #expect(batch.items.map { $0.id } == [id(1)])
    try rig.settlement.finish(
      batch, isCurrent: true, try response(503, Self.code("PGRST001")), rig.now)
    // Then it alone waits
    #expect(try rig.state(id(1)) == "waits for time, attempts 1, group 2")
    #expect(try rig.state(id(2)) == "pending")
    #expect(try rig.pauses.leftMS(.upload, rig.now) <= 0)
    // unless the service asks for a pause
    try rig.core.queue.endOwnWaits(of: try rig.session.owner)
    let other = try rig.upload()
    try rig.settlement.finish(
      other, isCurrent: true,
      try response(503, Self.code("PGRST001"), retryAfter: "60"), rig.now)
    #expect(try rig.pauses.leftMS(.upload, rig.now) >= 60_000)
  }

  @Test func anAnswerOfAnotherSessionAsksNothing() throws {
    let rig = try Rig.atHome()
    try rig.add(id(1))
    try rig.core.queue.setBlocks(try #require(try rig.row(id(1))).sequence, 1)
    try rig.settlement.finish(
      try rig.upload(), isCurrent: false, try response(503, "<html>"), rig.now)
    #expect(rig.uploads.readBacks.isEmpty)
    #expect(try rig.pauses.leftMS(.upload, rig.now) > 0)
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
    #expect(sizes == [100, 50, 50, 25, 12, 6, 3, 1])
  }
}
