import Base
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct UploadSearchTests {
  @Test func oneBadItemAmong64IsFoundInAFewRequests() throws {
    // Given 64 items of which the server refuses any batch that holds number 37
    let rig = try Rig.atHome()
    for number in 1...64 { try rig.add(id(number)) }
    var requests = 0
    // When
    while try rig.core.queue.hasPending(of: try rig.session.owner),
      requests < 100
    {
      let batch = try rig.upload()
      requests += 1
      let ids = batch.items.map { $0.id }
      let isRefused = ids.contains(id(37))
      let body =
        isRefused
        ? #"{"code":"22P02"}"#
        : "[" + ids.map { #"{"id":"\#($0.text)"}"# }.joined(separator: ",") + "]"
      try rig.settlement.finish(
        batch, isCurrent: true, try response(isRefused ? 400 : 201, body), rig.now)
    }
    // Then: the first one, log2(64), and one for the items that the search has spared
    expect(requests, equals: 8)
    try expect(rig.state(id(37)), equals: "parked, invalid_value, attempts 1")
    try expect(rig.core.queue.counts(of: try rig.session.owner).total, equals: 1)
  }

  @Test func bisectingGoesOnAfterARestart() throws {
    let rig = try Rig.atHome()
    for number in 1...4 { try rig.add(id(number)) }
    try rig.settlement.finish(
      try rig.upload(), isCurrent: true, try response(400, #"{"code":"22P02"}"#), rig.now)
    try expect((1...4).map { try rig.row(id($0))?.retryGroup }, equals: [1, 1, 1, 1])
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    _ = try other.decider.assess(.navigate)
    try expect(other.upload().items.map { $0.id }, equals: [id(1), id(2)])
  }

  /// Failed attempts of a batch of so many items before the next failure, and the items after it.
  @Test(arguments: [
    (0, 2, ["pending, attempts 1", "pending, attempts 1"]),
    (1, 2, ["pending, attempts 2", "pending, attempts 2"]),
    (2, 2, ["pending, attempts 3, group 2", "pending, attempts 3, group 4"]),
    (1, 1, ["pending, attempts 2"]), (2, 1, ["pending, attempts 3, group 2"]),
  ])
  func afterTwoFailuresOneOfTheItemsMayBeTheCause(
    _ failures: Int, _ items: Int, _ states: [String]
  ) throws {
    // Given
    let rig = try Rig.atHome()
    for number in 1...items { try rig.add(id(number)) }
    // When all uploads fail
    for _ in 0...failures {
      try rig.core.backoffs.clear("upload")
      try rig.settlement.finish(try rig.upload(), isCurrent: true, try response(503), rig.now)
    }
    // Then
    try expect((1...items).map { try rig.state(id($0)) }, equals: states)
  }

  @Test func anOutageMakesFewGroups() throws {
    // Given three single items that have failed twice, each in a group of its own
    let rig = try Rig.atHome()
    for number in 1...3 { try rig.add(id(number)) }
    for number in 1...3 {
      let row = try #require(try rig.row(id(number)))
      for _ in 1...2 { try rig.core.queue.transition(row.sequence, .pending(charged: true)) }
      try rig.core.queue.assign(row.sequence, retryGroup: try rig.settlement.nextGroup())
    }
    func fail() throws -> Int64? {
      let batch = try rig.upload()
      try rig.settlement.finish(batch, isCurrent: true, try response(503), rig.now)
      return try rig.core.queue.find(batch.items[0].tag)?.retryGroup
    }
    // When they fail one after the other, then the first two join the last group
    try expect(fail(), equals: 6)
    try expect(fail(), equals: 6)
    // and one that is in the last group already begins a new one
    try expect(fail(), equals: 8)
  }

  @Test func aReleaseChargesNothing() throws {
    let rig = try Rig.atHome()
    for number in 1...2 { try rig.add(id(number)) }
    try rig.settlement.release(try rig.upload())
    try expect((1...2).map { try rig.state(id($0)) }, equals: ["pending", "pending"])
  }
}
