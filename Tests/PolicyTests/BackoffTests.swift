import Policy
import TestSupport
import Testing

@Suite struct BackoffTests {
  @Test("QUE-7: delays lie between 2 s and the end of the step, and reach both")
  func bounds() {
    for attempt in 1...40 {
      let longest = Backoff.maxDelayMS(attempt: attempt)
      expect(Backoff.delayMS(attempt: attempt, random: 0), equals: 2_000)
      expect(Backoff.delayMS(attempt: attempt, random: .max), equals: longest)
      expect(longest, equals: min(2_000 << Int64(min(attempt, 20)), 300_000))
    }
  }

  @Test("Jitter is spread evenly over the step")
  func spread() {
    var counts = [Int](repeating: 0, count: 10)
    var generator = Random(seed: 7)
    for _ in 0..<10_000 {
      let delay = Backoff.delayMS(attempt: 3, random: generator.next())
      counts[Int((delay - 2_000) * 10 / 14_001)] += 1
    }
    for count in counts { expect((800...1_200).contains(count)) }
  }

  @Test("Any attempt number gives a valid delay")
  func extremes() {
    for attempt in [Int.min, -1, 0, 1, 63, 64, Int.max] {
      let delay = Backoff.delayMS(attempt: attempt, random: .max, floorMS: .min)
      expect((2_000...300_000).contains(delay))
    }
  }

  @Test("SES-6: the server's delay is the minimum, up to 24 h")
  func floor() {
    expect(Backoff.delayMS(attempt: 1, random: 0, floorMS: 60_000), equals: 60_000)
    expect(Backoff.delayMS(attempt: 9, random: .max, floorMS: 60_000), equals: 300_000)
    expect(Backoff.delayMS(attempt: 1, random: 0, floorMS: 1), equals: 2_000)
    expect(Backoff.delayMS(attempt: 1, random: 0, floorMS: .max), equals: 86_400_000)
  }

  @Test(
    "Delays spread behind the server's moment over the same time again, at most 5 min",
    arguments: [
      (1_000, 4_000), (5_000, 10_000), (60_000, 120_000), (300_000, 600_000),
      (3_600_000, 3_900_000), (86_400_000, Backoff.maxDelayMS),
    ] as [(Int64, Int64)])
  func spreadBehindTheFloor(floor: Int64, longest: Int64) {
    expect(Backoff.delayMS(attempt: 1, random: .max, floorMS: floor), equals: longest)
    var generator = Random(seed: 11)
    let least = max(floor, Backoff.minDelayMS)
    var halves = [0, 0]
    for _ in 0..<1_000 {
      let delay = Backoff.delayMS(attempt: 1, random: generator.next(), floorMS: floor)
      expect((least...longest).contains(delay))
      halves[delay < (least + longest) / 2 ? 0 : 1] += 1
    }
    expect(halves.allSatisfy { (400...600).contains($0) })
  }
}

/// A small generator with the same numbers in every run (SplitMix64).
struct Random: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
