import Foundation
import Policy
import TestSupport
import Testing

@Suite struct ISO8601Tests {
  @Test(
    "Times as text",
    arguments: [
      (1_767_225_600_123, "2026-01-01T00:00:00.123Z"), (0, "1970-01-01T00:00:00.000Z"),
      (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_007, "2000-02-29T00:00:00.007Z"),
      // The calendar repeats every 400 years, from 1 March on.
      (951_868_799_999, "2000-02-29T23:59:59.999Z"), (951_868_800_000, "2000-03-01T00:00:00.000Z"),
      (-11_670_998_400_000, "1600-02-29T00:00:00.000Z"),
      (-11_670_912_000_000, "1600-03-01T00:00:00.000Z"),
      (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] as [(Int64, String)])
  func format(ms: Int64, text: String) {
    expect(ISO8601.format(ms: ms), equals: text)
    expect(ISO8601.parse(text), equals: ms)
  }

  @Test("Times without a four-digit year become the nearest with one")
  func clamped() {
    expect(ISO8601.format(ms: .max), equals: "9999-12-31T23:59:59.999Z")
    expect(ISO8601.format(ms: .min), equals: "0000-01-01T00:00:00.000Z")
  }

  @Test(
    "The forms of PostgreSQL and others",
    arguments: [
      ("2026-01-01T00:00:00.123456+00:00", 1_767_225_600_123),
      ("2026-01-01T00:00:00.1234567890123456789012Z", 1_767_225_600_123),
      ("2026-01-01T00:00:00+00:00", 1_767_225_600_000),
      ("2026-01-01 01:00:00.5+01", 1_767_225_600_500),
      ("2025-12-31T18:30:00.05-0530", 1_767_225_600_050),
      ("2026-01-01t00:00:00z", 1_767_225_600_000),
    ] as [(String, Int64)])
  func parse(text: String, ms: Int64) {
    expect(ISO8601.parse(text), equals: ms)
  }

  @Test(
    "Texts that are not times",
    arguments: [
      "", "2026", "2026-01-01", "2026-01-01T00:00", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z",
      "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z",
      "2026-01-01T00:00:00+", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+01:",
      "2026-01-01T00:00:00+01:60", "2026-01-01T00:00:00Zx", " 2026-01-01T00:00:00Z",
      "+2026-01-01T00:00:00Z", "２026-01-01T00:00:00Z",
    ])
  func garbage(text: String) {
    expect(ISO8601.parse(text), equals: nil)
  }

  @Test("Every time reads back unchanged, and has the text of Foundation")
  func roundTrip() {
    var random = Random(seed: 3)
    let format = ISO8601DateFormatter()
    for step in 0..<3_000 {
      let ms = Int64(random.next() % 315_569_520_000_000) - 62_167_219_200_000
      let text = ISO8601.format(ms: ms)
      expect(ISO8601.parse(text), equals: ms, "\(text)")
      // Foundation follows the Julian calendar before 1582.
      guard ms > -12_219_292_800_000, step % 10 == 0 else { continue }
      let seconds = (Double(ms) / 1_000).rounded(.down)
      let expected = format.string(from: Date(timeIntervalSince1970: seconds))
      expect("\(text.prefix(19))Z", equals: expected)
    }
  }
}
