import Base
import Policy
import TestSupport
import Testing

@testable import Supabase

@Suite struct CursorTests {
  @Test(
    "Ten seconds earlier, exact to the microsecond, in the time zone of the server's text",
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
    expect(cursor.updatedAt, equals: expected)
    expect(cursor.id, equals: UUID(high: 0, low: 0), "all rows of that moment are behind it")
  }

  @Test(
    "A text that is not a timestamp stays as it is",
    arguments: [
      "", "infinity", "-infinity", "2026-01-01", "2026-01-01T00:00:00", "0044-03-15 BC",
      "2026-13-01T00:00:00Z", "20260101T000000Z000000", "ååååååååååååååååååååå",
    ])
  func garbage(updatedAt: String) throws {
    let cursor = Cursor(updatedAt: updatedAt, id: try uuid(idText))
    expect(cursor.overlapped(seconds: 10).updatedAt, equals: updatedAt)
  }

  @Test(
    "Any number of seconds is accepted; one that is too large for a clock moves nothing",
    arguments: [
      (Int64.min, "2026-01-01T00:00:00.5Z"), (-1, "2026-01-01T00:00:01.5Z"),
      (0, "2026-01-01T00:00:00.5Z"), (1, "2025-12-31T23:59:59.5Z"),
      (1 << 40, "0000-01-01T00:00:00.5Z"), (.max, "2026-01-01T00:00:00.5Z"),
    ] as [(Int64, String)])
  func extremes(seconds: Int64, expected: String) throws {
    let cursor = Cursor(updatedAt: "2026-01-01T00:00:00.5Z", id: try uuid(idText))
    expect(cursor.overlapped(seconds: seconds).updatedAt, equals: expected)
  }

  @Test("The position of a row; its time is put into filters")
  func rows() throws {
    func cursor(_ updatedAt: String) throws -> Cursor? {
      Cursor(try json(#"{"id":"\#(idText)","updated_at":"\#(updatedAt)"}"#))
    }
    for text in ["2026-01-01T00:00:01.123456+00:00", "2026-01-01 00:00:00-03"] {
      let read = try #require(try cursor(text))
      expect(read.updatedAt == text && read.id.text == idText)
      expect(Cursor(read.json), equals: read)
    }
    for text in [
      "", "infinity", "a,b", "a)b", "a&b", "å", "2026-01-01T00:00:01Z),or=(id.gt.0",
      "2026-01-01T00:00:01." + String(repeating: "1", count: 60) + "Z",
    ] {
      try expect(cursor(text), equals: nil)
    }
    for body in [
      "{}", "[]", #"{"id":"\#(idText)"}"#, #"{"id":7,"updated_at":"2026-01-01T00:00:01Z"}"#,
    ] {
      expect(Cursor(try json(body)), equals: nil)
    }
  }

  @Test("A time in the future is capped at the present")
  func capped() throws {
    let now = try #require(ISO8601.parse("2026-01-01T00:00:10Z"))
    let past = Cursor(updatedAt: "2026-01-01T02:00:09+02:00", id: try uuid(idText))
    expect(past.capped(at: now), equals: past)
    let future = Cursor(updatedAt: "2056-01-01T00:00:00+00:00", id: try uuid(idText))
    expect(future.capped(at: now).updatedAt, equals: "2026-01-01T00:00:10.000Z")
  }

  @Test("Whether a cursor is beyond another")
  func progress() throws {
    let one = Cursor(updatedAt: "2026-01-01T00:00:10.5+00:00", id: try uuid(idText))
    let other = Cursor(updatedAt: one.updatedAt, id: try uuid(otherText))
    let later = Cursor(updatedAt: "2026-01-01T03:00:11+02:00", id: try uuid(idText))
    expect(!one.isBeyond(one))
    expect(other.isBeyond(one) != one.isBeyond(other), "one of two ids is behind the other")
    expect(later.isBeyond(one) && !one.isBeyond(later))
    let finer = Cursor(updatedAt: "2026-01-01T00:00:10.500001+00:00", id: try uuid(idText))
    expect(finer.isBeyond(one) && !one.isBeyond(finer))
  }
}
