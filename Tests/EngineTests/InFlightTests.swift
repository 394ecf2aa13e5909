import Base
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct InFlightTests {
  private let revision = Revision()
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
    let list = InFlight(revision, after: 0)
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
    let list = InFlight(revision, after: 0)
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
    let list = InFlight(revision, after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    list.finish(1)
    // When the call runs again
    list.restoreFinished()
    // Then
    expect(list.find(1) != nil)
    // A call that ends has processed it.
    list.finish(1)
    list.confirmOutbox()
    list.restoreFinished()
    expect(list.find(1) == nil)
  }

  @Test func theOutboxIsHandedOutOnce() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(revision, after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    // When
    let first = list.takeOutbox()
    list.confirmOutbox()
    // Then
    expect(first.map { $0.int("id") }, equals: [1])
    expect(list.takeOutbox().isEmpty)
  }

  @Test func aLostReplyKeepsItsRequestsBeforeNewerOnes() throws {
    // Given a poll that took request 1, and a request 2 that was sent since
    let rig = try Rig.atHome()
    let list = InFlight(revision, after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    _ = list.takeOutbox()
    try list.send(try request(rig), .validate, generation: 1, at)
    // When the reply was lost
    list.restoreOutbox()
    // Then
    expect(list.takeOutbox().map { $0.int("id") }, equals: [1, 2])
    // And a reply that has reached the host is not repeated
    list.confirmOutbox()
    list.restoreOutbox()
    expect(list.takeOutbox().isEmpty)
  }

  @Test func aRequestThatFinishedBeforeItWasPolledIsNotHandedOut() throws {
    let rig = try Rig.atHome()
    let list = InFlight(revision, after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    list.finish(1)
    expect(list.takeOutbox().isEmpty)
  }

  @Test func removeAllForgetsRequestsAndOutboxAndNeverRepeatsAnID() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(revision, after: 0)
    try list.send(try request(rig), .validate, generation: 1, at)
    // When
    list.removeAll()
    try list.send(try request(rig), .validate, generation: 1, at)
    // Then
    expect(list.requests.map { $0.id }, equals: [2])
    expect(list.takeOutbox().map { $0.int("id") }, equals: [2])
  }

  @Test func aPurposeIsInFlightWithItsRequest() throws {
    // Given
    let rig = try Rig.atHome()
    let backend = rig.core.configuration.backend
    let bearer = try rig.session.accessToken
    let list = InFlight(revision, after: 0)
    // When, then
    try list.send(AuthRequests.user(backend, bearer: bearer), .validate, generation: 1, at)
    expect(list.contains(.validate))
    expect(!list.contains(.summary))
    try list.send(try request(rig), .validate, generation: 1, at)
    expect(list.contains(.summary))
  }

  @Test func everyChangeOfTheListAdvancesTheRevision() throws {
    // Given
    let rig = try Rig.atHome()
    let list = InFlight(revision, after: 0)
    // When, then
    var last = revision.value
    try list.send(try request(rig), .validate, generation: 1, at)
    expect(revision.value != last)
    last = revision.value
    list.finish(1)
    expect(revision.value != last)
  }
}
