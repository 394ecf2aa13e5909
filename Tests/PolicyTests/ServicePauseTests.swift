import Policy
import TestSupport
import Testing

@Suite struct ServicePauseTests {
  @Test("Every failure lengthens the pause, and one request at a time probes until a success")
  func failures() {
    var service = ServicePause()
    expect(!service.isProbing)
    for attempt in 1...20 {
      let now = service.notBeforeMS
      let delay = service.fail(at: now, random: .max, floorMS: 0)
      expect(delay, equals: Backoff.maxDelayMS(attempt: attempt))
      expect(service, equals: ServicePause(attempts: Int64(attempt), notBeforeMS: now + delay))
      expect(service.isProbing)
    }
    service.succeed(pauseLeftMS: 0)
    expect(service, equals: ServicePause())
  }

  @Test("A response to a request from before the failure does not end the pause")
  func lateSuccess() {
    var service = ServicePause()
    _ = service.fail(at: 0, random: 0, floorMS: 60_000)
    let paused = service
    service.succeed(pauseLeftMS: 1)
    expect(service, equals: paused)
  }

  @Test("A later failure does not shorten a pause that lasts")
  func laterFailure() {
    var service = ServicePause()
    _ = service.fail(at: 0, random: 0, floorMS: 60_000)
    _ = service.fail(at: 1_000, random: 0, floorMS: 0)
    expect(service, equals: ServicePause(attempts: 2, notBeforeMS: 60_000))
    _ = service.fail(at: 59_000, random: 0, floorMS: 0)
    expect(service, equals: ServicePause(attempts: 3, notBeforeMS: 61_000))
  }

  @Test("No delay is longer than the longest of its kind")
  func longest() {
    for floor in [0, Backoff.maxStepMS, RetryAfter.maxMS] {
      for attempt in [1, 8, 99] {
        let delay = Backoff.delayMS(attempt: attempt, random: .max, floorMS: floor)
        expect(delay <= (floor > Backoff.maxStepMS ? Backoff.maxDelayMS : 2 * Backoff.maxStepMS))
      }
    }
  }

  @Test("The server's delay is respected")
  func floor() {
    var service = ServicePause()
    expect(service.fail(at: 0, random: 0, floorMS: 60_000), equals: 60_000)
  }

  @Test("Reads after an outage spread over the step of the failures, or over the longest one")
  func readDelay() {
    var service = ServicePause()
    for _ in 1...3 { _ = service.fail(at: 0, random: 0, floorMS: 0) }
    expect(service.readDelayMS(random: 0, isAsked: false), equals: 2_000)
    expect(service.readDelayMS(random: .max, isAsked: false), equals: 16_000)
    expect(service.readDelayMS(random: .max, isAsked: true), equals: 300_000)
  }

  @Test(
    "A token is refreshed before its expiry, but not in the first two thirds of its lifetime",
    arguments: [(90_000, 3_600_000, 90_000), (90_000, 60_000, 20_000), (0, 3_600_000, 0)]
      as [(Int64, Int64, Int64)])
  func refreshMargin(configured: Int64, lifetime: Int64, margin: Int64) {
    expect(RefreshPolicy.marginMS(configuredMS: configured, lifetimeMS: lifetime), equals: margin)
  }
}
