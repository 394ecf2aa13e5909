import Base
import Testing

@testable import Supabase

@Suite struct CursorTests {
  @Test(
    "Ten seconds earlier, to the microsecond, in the zone that the server wrote",
    arguments: [
      ("2026-01-01T00:00:11.123456+00:00", "2026-01-01T00:00:01.123456+00:00"),
      ("2026-01-01T00:00:01.123456+00:00", "2025-12-31T23:59:51.123456+00:00"),
      ("2024-03-01T00:00:09.9+02:00", "2024-02-29T23:59:59.9+02:00"),
      ("2026-01-01T00:00:10Z", "2026-01-01T00:00:00Z"),
      ("2026-01-01T00:00:10+00:00", "2026-01-01T00:00:00+00:00"),
      ("2026-01-01T00:00:10.000001-03:30", "2026-01-01T00:00:00.000001-03:30"),
      ("0000-01-01T00:00:05+00:00", "0000-01-01T00:00:00+00:00"),
    ])
  func overlap(updatedAt: String, expected: String) throws {
    let cursor = Cursor(updatedAt: updatedAt, id: try uuid(idText)).overlapped(seconds: 10)
    #expect(cursor.updatedAt == expected)
    #expect(cursor.id == UUID(high: 0, low: 0), "all rows of that moment are behind it")
  }

  @Test(
    "What is no timestamp stays as it is",
    arguments: [
      "", "infinity", "-infinity", "2026-01-01", "2026-01-01T00:00:00", "0044-03-15 BC",
      "2026-13-01T00:00:00Z", "20260101T000000Z000000", "ååååååååååååååååååååå",
    ])
  func garbage(updatedAt: String) throws {
    let cursor = Cursor(updatedAt: updatedAt, id: try uuid(idText))
    #expect(cursor.overlapped(seconds: 10).updatedAt == updatedAt)
  }

  @Test("No number of seconds makes it fail", arguments: [Int64.min, -1, 0, 1, 1 << 40, .max])
  func extremes(seconds: Int64) throws {
    let cursor = Cursor(updatedAt: "2026-01-01T00:00:00.5Z", id: try uuid(idText))
    #expect(cursor.overlapped(seconds: seconds).updatedAt.hasSuffix(".5Z"))
  }

  @Test("What may stand in a filter")
  func timestamps() {
    for text in ["2026-01-01T00:00:01.123456+00:00", "2026-01-01 00:00:00-03", "infinity"] {
      #expect(Cursor.isTimestamp(text))
    }
    for text in ["", "a\"b", "a,b", "a)b", "a&b", "å", "a\0", String(repeating: "1", count: 65)] {
      #expect(!Cursor.isTimestamp(text))
    }
  }
}
