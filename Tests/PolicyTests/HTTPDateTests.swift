import Foundation
import Policy
import TestSupport
import Testing

@Suite struct HTTPDateTests {
  @Test(
    "The three forms of RFC 9110",
    arguments: [
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
      "Sun Nov  6 08:49:37 1994", "  Sun, 06 Nov 1994 08:49:37 GMT ",
      "sun, 06 nov 1994 08:49:37 gmt",
    ])
  func forms(text: String) {
    expect(HTTPDate.parse(text), equals: 784_111_777_000)
    expect(HTTPDate.parse(Array(text.utf8)), equals: 784_111_777_000)
  }

  @Test(
    "Edges of the calendar",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1_000),
      ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000_000),
      ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400_000),
      ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800_000),
      ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
      ("Thursday, 31-Dec-69 00:00:00 GMT", 3_155_673_600_000),
      ("Mon Nov 16 08:49:37 1994", 784_975_777_000),
    ] as [(String, Int64)])
  func edges(text: String, expected: Int64) {
    expect(HTTPDate.parse(text), equals: expected)
  }

  @Test(
    "Texts that are not dates",
    arguments: [
      "", "now", "0", "Sun", "Sun,", "Sun, 06 Nov 1994", "Sun, 6 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
      "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 24:00:00 GMT",
      "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
      "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
      "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49:37 GMT x", "Sunday Nov  6 08:49:37 1994",
      "Sun, 06 Nov ٢٠٢٤ 08:49:37 GMT", "1994-11-06T08:49:37Z",
    ])
  func garbage(text: String) {
    expect(HTTPDate.parse(text), equals: nil)
  }

  @Test("A thousand days in several centuries agree with Foundation")
  func agreesWithFoundation() {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    for step in 0..<1_000 {
      let seconds = Int64(-8_520_336_000) + Int64(step) * 86_413_337
      let text = format.string(from: Date(timeIntervalSince1970: Double(seconds)))
      expect(HTTPDate.parse(text), equals: seconds * 1_000, "\(text)")
    }
  }

  @Test("Random bytes do not trap")
  func fuzz() {
    var random = Random(seed: 1)
    let parts = ["Sun", "day", ", ", " ", "06", "6", "Nov", "1994", ":", "08", "GMT", "-", "\u{0}"]
    for _ in 0..<20_000 {
      var text = ""
      for _ in 0..<(Int(random.next() % 14)) {
        text += parts[Int(random.next() % UInt64(parts.count))]
      }
      _ = HTTPDate.parse(text)
      _ = ISO8601.parse(text)
      _ = RetryAfter.parse(text, serverNowMS: Int64(bitPattern: random.next()))
    }
  }
}
