import Base
import Policy
import Store
import Supabase
import TestSupport
import Testing

@testable import Engine

@Suite struct ServicePausesTests {
  /// The data service's own answer.
  private let busy = #"{"code":"PGRST001","message":"no connection"}"#

  @Test func anAnswerToAnEarlierReadDoesNotEndTheSpreadOfReads() throws {
    // Given reads that come later, since the refreshes failed for a while
    let rig = try Rig()
    for _ in 0..<10 { try rig.pauses.backOff(.refresh, try response(503), rig.now) }
    var left: Int64 = 0
    while left == 0 {
      try rig.pauses.spreadReads(rig.now)
      left = try rig.pauses.leftMS(.pull, rig.now)
    }
    // When a read that was in flight is answered
    try rig.pauses.succeed(.pull)
    // Then
    try expect(rig.pauses.leftMS(.pull, rig.now), equals: left)
  }

  @Test func aPauseOfAnotherProcessReplacesAShorterOne() throws {
    let rig = try Rig()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    other.clock.set(rig.now)
    try rig.pauses.backOff(.upload, try response(503, retryAfter: "60"), rig.now)
    try other.pauses.backOff(.upload, try response(503, busy, retryAfter: "600"), other.now)
    try expect(rig.pauses.leftMS(.upload, rig.now) >= 600_000)
    try rig.pauses.backOff(.upload, try response(503), rig.now)
    try expect(rig.pauses.leftMS(.upload, rig.now) >= 600_000)
    try expect(rig.pauses.pause(.upload, rig.now)?.code, equals: .serverPause)
  }

  @Test func theLongestPauseOfAllIsBelieved() {
    let until = SteadyTime(ms: Backoff.maxDelayMS)
    expect(Pause(since: 0, until: until).leftMS(0), equals: Backoff.maxDelayMS)
  }

  @Test(arguments: [true, false])
  func aPauseThatHasNotBegunIsOver(_ isAsked: Bool) throws {
    let rig = try Rig()
    for (beyond, left) in [(Int64(0), Int64(9000)), (1, 0)] {
      let since = try rig.core.steady(rig.now) + beyond
      let pause = Pause(since: since, until: since + 9000)
      try rig.core.pauses.set("upload", attempts: 1, pause, isAsked: isAsked)
      try expect(rig.pauses.leftMS(.upload, rig.now), equals: left)
    }
  }

  @Test func aSuccessDuringThePauseDoesNotEndItAndOneAfterItDoes() throws {
    // Given
    let rig = try Rig()
    try rig.pauses.backOff(.upload, try response(503), rig.now)
    let left = try rig.pauses.leftMS(.upload, rig.now)
    // When a response arrives to a request that was sent before
    try rig.pauses.succeed(.upload)
    // Then
    try expect(rig.pauses.leftMS(.upload, rig.now), equals: left)
    try expect(rig.pauses.isProbing(.upload))
    // When the probe succeeds
    rig.advance(left)
    try rig.pauses.succeed(.upload)
    // Then
    try expect(!rig.pauses.isProbing(.upload))
    try expect(rig.core.pauses.read("upload").attempts, equals: 0)
  }

  @Test func failuresInARowAreCountedInTheFile() throws {
    let rig = try Rig()
    for count in 1...3 {
      try rig.pauses.backOff(.refresh, try response(0), rig.now)
      try expect(rig.core.pauses.read("refresh").attempts, equals: Int64(count))
    }
    // And the count ends with the pause
    try rig.pauses.clearAuth()
    try expect(rig.pauses.leftMS(.refresh, rig.now) <= 0)
    try expect(!rig.pauses.isProbing(.refresh))
  }

  @Test func readsFollowARefreshThatHadFailed() throws {
    // Given
    let rig = try Rig()
    try rig.pauses.spreadReads(rig.now)
    try expect(rig.pauses.leftMS(.pull, rig.now) <= 0)
    try rig.pauses.backOff(.refresh, try response(503), rig.now)
    // When
    try rig.pauses.spreadReads(rig.now)
    // Then
    for purpose in [Purpose.pull, .summary] {
      expect((2000...4000).contains(try rig.pauses.leftMS(purpose, rig.now)))
      try expect(!rig.pauses.isProbing(purpose))
    }
    try expect(rig.pauses.leftMS(.upload, rig.now) <= 0)
  }

  @Test func aSpreadReadKeepsThePauseThatTheServerAskedFor() throws {
    let rig = try Rig()
    try rig.pauses.backOff(.pull, try response(503, busy, retryAfter: "60"), rig.now)
    for _ in 0..<12 { try rig.pauses.backOff(.refresh, try response(503), rig.now) }
    try rig.pauses.spreadReads(rig.now)
    try rig.pauses.endUnasked { _ in true }
    try expect(rig.pauses.leftMS(.pull, rig.now) >= 60_000)
  }

  // MARK: Whose answer it is

  /// A status, a body and the purpose; whether the service itself has answered.
  @Test(arguments: [
    (200, "[]", Purpose.pull, true), (299, "[]", .pull, true), (300, "[]", .pull, false),
    (199, "[]", .pull, false), (200, "{}", .pull, false), (200, "[]", .upload, true),
    (200, "[]", .membershipCheck, true), (200, "[]", .live, true), (200, "[]", .summary, false),
    (200, #"{"access_token":"a"}"#, .refresh, true), (200, "{}", .signIn, false),
    (200, #"{"id":"a11ce000-0000-4000-8000-000000000001"}"#, .validate, true),
    (200, "{}", .validate, false), (503, "<html>", .pull, false),
    (503, #"{"code":"PGRST001","message":"no connection"}"#, .pull, true),
  ])
  func onlyAnAnswerInTheRequestsOwnFormTellsTheServersTime(
    _ status: Int, _ body: String, _ purpose: Purpose, _ isOwn: Bool
  ) throws {
    try expect(response(status, body).isOwn(purpose), equals: isOwn)
  }
}
