import Base
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct InFlightTests {
  private let at = Rig.start

  private func request(_ rig: Rig) throws -> Request {
    RestRequests.summary(
      rig.core.configuration.backend, org: orgA, bearer: try rig.session.accessToken)
  }

  private func later(_ milliseconds: Int64) -> Instant {
    Instant(
      wallMS: at.wallMS, monotonicMS: at.monotonicMS + milliseconds, bootID: at.bootID)
  }

  @Test func aRequestIsLateWhenItsTimeOutAndTheGraceHavePassed() throws {
    // Given a request with a time-out of 30 s
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    let request = try request(rig)
    expect(request.timeoutMS, equals: 30_000)
    try list.send(request, .validate, generation: 1, at)
    // When, then
    for (passed, isLate) in [(0, false), (34_999, false), (35_000, true), (900_000, true)] {
      expect(list.late(later(Int64(passed))).count, equals: (isLate ? 1 : 0), "after \(passed) ms")
    }
  }

  @Test func aLateRequestStaysUntilItIsFinished() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    try list.send(try request(rig), .validate, generation: 1, later(1))
    // When
    let late = list.late(later(35_000))
    // Then
    expect(late.map { $0.id }, equals: [1])
    expect(list.requests.map { $0.id }, equals: [1, 2])
    list.finish(1)
    expect(list.requests.map { $0.id }, equals: [2])
    expect(list.find(1) == nil)
  }

  @Test func aCallThatRunsAgainHasProcessedNothing() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    list.finish(1)
    // When the call runs again
    list.restoreFinished()
    // Then
    expect(list.find(1) != nil)
    // A call that ends has processed it.
    list.finish(1)
    list.forgetFinished()
    list.restoreFinished()
    expect(list.find(1) == nil)
  }

  /// The ids of the requests that are given.
  private func given(_ list: InFlight, _ now: Instant? = nil) -> [Int64] {
    var ids: [Int64] = []
    while let request = list.take(now ?? at) { ids.append(request.int("id") ?? 0) }
    return ids
  }

  @Test func aRequestIsGivenOnce() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    expect(list.holdsMade)
    // When
    expect(given(list), equals: [1])
    // Then
    expect(!list.holdsMade)
    expect(given(list).isEmpty)
  }

  @Test func aRequestStaysBeforeNewerOnesUntilItIsGiven() throws {
    // Given a call that found request 1, and a request 2 that was made since
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    expect(list.next(at)?.id, equals: 1)
    try list.send(try request(rig), .validate, generation: 1, at)
    // Then
    expect(given(list), equals: [1, 2])
  }

  @Test func aRequestThatHasFinishedOrRunOutIsNotGiven() throws {
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    for _ in 0..<2 { try list.send(try request(rig), .validate, generation: 1, at) }
    list.finish(1)
    let late = Instant(
      wallMS: at.wallMS, monotonicMS: list.requests[0].deadlineMS, bootID: at.bootID)
    expect(given(list, late).isEmpty)
  }

  @Test func aResponseIsKeptUntilItIsWorkedOff() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    let sent = try #require(list.find(1))
    // When a response comes, and another one
    let first = try response(200, "[]")
    list.keep(first, for: sent)
    list.keep(try response(500), for: sent)
    // Then the first one counts, whatever time passes
    expect(list.answered.first?.response === first)
    let late = Instant(wallMS: at.wallMS, monotonicMS: sent.deadlineMS + 1, bootID: at.bootID)
    expect(list.late(late).isEmpty)
    list.finish(1)
    expect(list.answered.isEmpty)
  }

  @Test func removeAllForgetsRequestsAndNeverRepeatsAnID() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    // When
    list.removeAll()
    try list.send(try request(rig), .validate, generation: 1, at)
    // Then
    expect(list.requests.map { $0.id }, equals: [2])
    expect(given(list), equals: [2])
  }
}
