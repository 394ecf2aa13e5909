import Policy
import TestSupport
import Testing

@Suite struct RetryAfterTests {
  private let now: Int64 = 784_111_777_000

  @Test(
    "Seconds",
    arguments: [
      ("0", 0), ("120", 120_000), (" 5 ", 5_000), ("86400", 86_400_000), ("86401", 86_400_000),
      ("99999999999999999999999999", 86_400_000), ("0007", 7_000),
    ] as [(String, Int64)])
  func seconds(value: String, expected: Int64) {
    expect(RetryAfter.parse(value, serverNowMS: now), equals: expected)
  }

  @Test(
    "Dates, in server time",
    arguments: [
      ("Sun, 06 Nov 1994 08:50:37 GMT", 60_000), ("Sunday, 06-Nov-94 08:50:37 GMT", 60_000),
      ("Sun Nov  6 08:50:37 1994", 60_000), ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
      ("Sun, 06 Nov 1994 08:49:36 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400_000),
    ] as [(String, Int64)])
  func dates(value: String, expected: Int64) {
    expect(RetryAfter.parse(value, serverNowMS: now), equals: expected)
  }

  @Test("A date that only an estimate is known for")
  func estimated() {
    let date = "Sun, 06 Nov 1994 08:50:37 GMT"
    expect(RetryAfter.parse(date, serverNowMS: now, longestMS: 60_000), equals: 60_000)
    expect(RetryAfter.parse(date, serverNowMS: now, longestMS: 59_999), equals: 59_999)
    expect(RetryAfter.parse("120", serverNowMS: now, longestMS: 59_999), equals: 120_000)
  }

  @Test(
    "Values that are neither",
    arguments: ["", " ", "-1", "+5", "1.5", "5s", "soon", "0x10", "1e3", "5 5", "٣", "Sun, 06 Nov"])
  func garbage(value: String) {
    expect(RetryAfter.parse(value, serverNowMS: now), equals: nil)
  }

  @Test("No server time makes it overflow")
  func extremes() {
    let date = "Fri, 31 Dec 9999 23:59:59 GMT"
    expect(RetryAfter.parse(date, serverNowMS: .min), equals: nil)
    expect(RetryAfter.parse(date, serverNowMS: .max), equals: 0)
  }
}
