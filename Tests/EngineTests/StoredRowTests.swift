import Base
import TestSupport
import Testing

@testable import Engine

/// Whether a row that the server has under an item's id is another one.
@Suite struct StoredRowTests {
  private func isOther(_ stored: String, than sent: String) throws -> Bool {
    let row = try Array(#"{"id":"x","v":\#(stored)}"#.utf8).withUnsafeBytes {
      try JSON.receive($0).value
    }
    return StoredRow.isOther(row, than: try json(#"{"v":\#(sent)}"#))
  }

  /// What was sent, and another way to write it.
  @Test(arguments: [
    // The server may fill in what is null.
    ("null", "7"), ("null", "null"), ("true", "true"), ("[false]", "[false]"),
    // Numbers.
    ("1", "1.0"), ("0.5", "0.50"), ("1e2", "100"), ("1e22", "10000000000000000000000"),
    ("-1.2345678901234567e19", "-12345678901234567000"),
    // Times: another zone, other decimals, a date that is stored as a time.
    (#""2026-01-01T10:00:00Z""#, #""2026-01-01T11:00:00.000+01:00""#),
    (#""10:00""#, #""10:00:00""#), (#""10:00:00""#, #""10:00""#),
    (#""2026-01-01""#, #""2026-01-01T00:00:00""#), (#""10:00""#, #""10:00:00Z""#),
    (#""2026-01-01T10:00Z""#, #""2026-01-01T10:00:00+00:00""#),
    // Spaces at the ends of a text.
    (#"" a b ""#, #""a b""#), (#""a\n""#, #""a""#),
    // Another type, as a form's field may have.
    (#""7""#, "7"), (#""12.50""#, "12.5"), (#""true""#, "true"),
    (#""A0000000-0000-4000-8000-00000000000B""#, #""a0000000-0000-4000-8000-00000000000b""#),
    // Inside lists and objects.
    (#"["10:00",1]"#, #"["10:00:00",1.0]"#), (#"{"a":1}"#, #"{"a":1.0}"#),
  ])
  func anotherFormIsNoDifference(_ sent: String, _ stored: String) throws {
    try expect(!isOther(stored, than: sent))
  }

  /// What was sent, and what no rule of writing explains.
  @Test(arguments: [
    ("7", "null"), (#""x""#, "null"), ("7", "8"), ("true", "false"),
    ("9007199254740992", "9007199254740993"), ("1e22", "10000000000000010000000"),
    ("1e22", "-10000000000000000000000"), ("1e300", "1e400"),
    (#""2026-01-01T10:00:00Z""#, #""2026-01-01T10:00:00+01:00""#),
    (#""10:00""#, #""11:00:00""#), (#""10:00:00""#, #""11:00""#), (#""10:00""#, #""1:00:00""#),
    // Only a time or a date is lengthened, never a word or a number with a sign.
    (#""10""#, #""10a""#), (#""10""#, #""10 apples""#), (#""1""#, #""1ø""#),
    (#""Kari""#, #""Kari Nordmann""#), (#""+47""#, #""+4799""#), (#""a1""#, #""a12""#),
    (#""""#, #""1""#), (#""7""#, "8"), (#""seven""#, "7"), (#""true""#, "false"), (#""null""#, "7"),
    (#""1.1""#, #""1.10""#), (#""12:00""#, #""12:00:59""#),
    (#""2026-01-01""#, #""2026-01-01T15:00:00""#), (#""12""#, #""12:00""#),
    (#""2026-01-01T10:00:00.0001Z""#, #""2026-01-01T10:00:00.0002Z""#),
    (#""Kari""#, #""kari""#), (#""a b""#, #""ab""#), ("[1]", "{}"), (#"{"a":1}"#, #""a""#),
    (#"{"a":1}"#, #"{"a":1,"b":2}"#), (#"{"a":null}"#, "{}"), ("[null]", "[3]"),
    (#"["a"]"#, #"["a","b"]"#), (#"["a","b"]"#, #"["b","a"]"#),
    (#"{"a":1}"#, #"{"a":2}"#), (#"{"a":1}"#, "{}"),
  ])
  func anotherValueIsADifference(_ sent: String, _ stored: String) throws {
    try expect(isOther(stored, than: sent))
  }

  @Test func aColumnThatTheServerDoesNotShowIsNoDifference() throws {
    let (stored, sent) = (try json(#"{"id":"x"}"#), try json(#"{"v":7}"#))
    expect(!StoredRow.isOther(stored, than: sent))
  }

  /// Two ways to write the same value.
  @Test(arguments: [
    ("null", "null"), ("true", "true"), (#""x""#, #""x""#), ("1", "1.0"), ("12.5", "12.50"),
    ("1e2", "100"),
    (#""2026-01-01T10:00:00+01:00""#, #""2026-01-01T09:00:00+00:00""#),
    (#""2026-01-01T09:00:00Z""#, #""2026-01-01T09:00:00.000000+00:00""#),
    (#"{"a":[1]}"#, #"{"a":[1]}"#),
  ])
  func aColumnHoldsAValueInWhateverFormTheServerWritesIt(_ left: String, _ right: String) throws {
    try expect(StoredRow.holds(json("[\(left)]").elements[0], json("[\(right)]").elements[0]))
    try expect(StoredRow.holds(json("[\(right)]").elements[0], json("[\(left)]").elements[0]))
    try expect(StoredRow.mayHold(json("[\(left)]").elements[0], json("[\(right)]").elements[0]))
  }

  /// The row's value and the sent one, and whether the server may have made one of the other.
  @Test(arguments: [
    ("null", "1", false), ("1", "null", false), ("null", #""""#, false), ("1", "2", false),
    ("true", "false", false), (#""Kari""#, #"" Kari ""#, true), (#""kari""#, #""Kari""#, false),
    (#""Kari Nordmann""#, #""Kari""#, false),
    (#""2026-01-01T10:00:00Z""#, #""2026-01-01T10:00:00+01:00""#, false),
  ])
  func aTextWithSpacesIsAnotherValueUnlessItWasSent(
    _ stored: String, _ sent: String, _ mayHold: Bool
  ) throws {
    let (row, value) = (try json("[\(stored)]").elements[0], try json("[\(sent)]").elements[0])
    expect(!StoredRow.holds(row, value))
    expect(StoredRow.mayHold(row, value), equals: mayHold)
  }
}
