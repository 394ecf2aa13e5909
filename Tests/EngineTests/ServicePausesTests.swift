import Base
import Policy
import Store
import Testing

@testable import Engine

@Suite struct ServicePausesTests {
  @Test func aFailureBeginsAPauseOfItsOwnService() throws {
    // Given
    let rig = try Rig()
    #expect(try rig.pauses.leftMS(.rest, rig.now) <= 0)
    // When
    try rig.pauses.backOff(.rest, try response(503), rig.now)
    // Then the first step is 2 to 4 s
    let left = try rig.pauses.leftMS(.rest, rig.now)
    #expect((2000...4000).contains(left))
    #expect(try rig.pauses.isProbing(.rest))
    for service in [Service.auth, .pull] {
      #expect(try rig.pauses.leftMS(service, rig.now) <= 0)
      #expect(try !rig.pauses.isProbing(service))
    }
  }

  @Test func aPauseLastsAtLeastAsLongAsTheServerAsks() throws {
    let rig = try Rig()
    try rig.pauses.backOff(.rest, try response(429, retryAfter: "60"), rig.now)
    #expect(try rig.pauses.leftMS(.rest, rig.now) >= 60_000)
  }

  @Test func theProcessInWhichItBeganMeasuresByTheMonotonicClock() throws {
    // Given
    let rig = try Rig()
    try rig.pauses.backOff(.rest, try response(503, retryAfter: "60"), rig.now)
    let before = try rig.pauses.leftMS(.rest, rig.now)
    // When the device's clock is set back by an hour while 10 s pass
    rig.advance(10_000, wallMS: -3_600_000)
    // Then
    #expect(try rig.pauses.leftMS(.rest, rig.now) == before - 10_000)
  }

  @Test func anotherProcessMeasuresByTheDevicesClock() throws {
    // Given
    let rig = try Rig()
    let other = try Rig(folder: rig.folder, keyStore: rig.keyStore)
    try rig.pauses.backOff(.rest, try response(503, retryAfter: "60"), rig.now)
    // When, then
    #expect(
      try other.pauses.leftMS(.rest, other.now) == rig.pauses.notBeforeMS(.rest)
        - other.now.wallMS)
    // And a longer pause by the other process replaces the one that began here
    try other.pauses.backOff(.rest, try response(503, retryAfter: "600"), other.now)
    #expect(try rig.pauses.leftMS(.rest, rig.now) >= 600_000)
  }

  @Test func aPauseStoredUnderAnotherClockIsIgnored() throws {
    let rig = try Rig()
    for (beyond, left) in [(Int64(0), Backoff.maxDelayMS), (1, 0)] {
      try rig.core.backoffs.set(
        "rest", attempts: 1, notBeforeMS: rig.now.wallMS + Backoff.maxDelayMS + beyond)
      #expect(try rig.pauses.leftMS(.rest, rig.now) == left)
    }
  }

  @Test func aSuccessDuringThePauseDoesNotEndItAndOneAfterItDoes() throws {
    // Given
    let rig = try Rig()
    try rig.pauses.backOff(.rest, try response(503), rig.now)
    let left = try rig.pauses.leftMS(.rest, rig.now)
    // When a response arrives to a request that was sent before
    try rig.pauses.succeed(.rest)
    // Then
    #expect(try rig.pauses.leftMS(.rest, rig.now) == left)
    #expect(try rig.pauses.isProbing(.rest))
    // When the probe succeeds
    rig.advance(left)
    try rig.pauses.succeed(.rest)
    // Then
    #expect(try !rig.pauses.isProbing(.rest))
    #expect(try rig.core.backoffs.read("rest").attempts == 0)
  }

  @Test func failuresInARowAreCountedInTheFile() throws {
    let rig = try Rig()
    for count in 1...3 {
      try rig.pauses.backOff(.auth, try response(0), rig.now)
      #expect(try rig.core.backoffs.read("auth").attempts == Int64(count))
    }
    // And the count ends with the pause
    try rig.pauses.clear(.auth)
    #expect(try rig.pauses.leftMS(.auth, rig.now) <= 0)
    #expect(try !rig.pauses.isProbing(.auth))
  }
}
