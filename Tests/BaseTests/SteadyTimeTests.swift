import TestSupport
import Testing

@testable import Base

@Suite struct SteadyTimeTests {
  @Test("A time is moved by milliseconds, and two times differ by milliseconds")
  func arithmetic() {
    let time: SteadyTime = 1_000
    expect((time + 30).ms == 1_030 && (time - 30).ms == 970)
    let earlier: SteadyTime = time - 400
    expect(earlier - time, equals: -400)
    expect(time < time + 1 && !(time < time))
  }

  @Test("Any number that a damaged file holds is a time")
  func limits() {
    expect((SteadyTime(ms: .max) + 1).ms, equals: .min)
    expect((SteadyTime(ms: .min) - 1).ms, equals: .max)
    expect(SteadyTime(ms: .min) - SteadyTime(ms: 1), equals: .max)
  }
}
