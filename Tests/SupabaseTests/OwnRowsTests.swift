import Base
import TestSupport
import Testing

@testable import Supabase

/// The members `own`, `change` and `delete` of a kind.
@Suite struct OwnRowsTests {
  /// What is read of a kind with the columns `at`, `note`, `n` and these further members.
  private func own(_ members: String, columns: String = #""user_id","at","note","n""#)
    throws(Failure) -> OwnRows?
  {
    try backend(#","queue":{"a":{"table":"t","columns":[\#(columns)]\#(members)}}"#).kind("a")?.own
  }

  private func refused(_ members: String) -> String? {
    refusal { () throws(Failure) in try own(members) }
  }

  @Test func withoutOwnNothingIsKept() throws {
    try expect(own("") == nil)
    try expect(own(#","own":null"#) == nil)
  }

  @Test func allColumnsAreKeptFor400DaysAndNothingIsCorrectedUnlessTheKindSaysSo() throws {
    let own = try #require(try own(#","own":{}"#))
    expect(own.columns, equals: ["at", "note", "n"])
    expect(own.days, equals: 400)
    expect(own.time, equals: "updated_at")
    expect(own.change == nil && own.deletion == nil)
    expect(own.selected, equals: ["id", "updated_at", "at", "note", "n"])
  }

  @Test func rowsAreListedByTheTimeThatTheKindNames() throws {
    try expect(own(#","own":{"time":"at"}"#)?.time, equals: "at")
    try expect(own(#","own":{"time":"updated_at"}"#)?.time, equals: "updated_at")
    let standard = try own(#","own":{}"#, columns: #""user_id","occurred_at""#)
    expect(standard?.time, equals: "occurred_at")
  }

  @Test func theColumnsOfAChangeAreThoseThatAreKept() throws {
    let all = try own(#","own":{"columns":["n","note"]},"change":{}"#)?.change
    expect(all?.columns, equals: ["note", "n"])
    expect(all?.function, equals: "")
    expect(all?.id, equals: "")
    let some = try own(
      #","own":{"days":1},"change":{"columns":["n"],"function":"change_items","id":"change_id"}"#)
    expect(some?.days, equals: 1)
    expect(some?.change?.columns, equals: ["n"])
    expect(some?.change?.function, equals: "change_items")
    expect(some?.change?.id, equals: "change_id")
  }

  @Test func aRowIsTakenBackByAColumnOrDeleted() throws {
    let marked = try own(#","own":{"columns":["n"]},"delete":"deleted_at""#)
    expect(marked?.deletion, equals: .deletedAt)
    // Only then has the table such a column for certain.
    expect(marked?.selected, equals: ["id", "updated_at", "deleted_at", "n"])
    let removed = try own(#","own":{"columns":["n"]},"delete":"row""#)
    expect(removed?.deletion, equals: .row)
    expect(removed?.selected, equals: ["id", "updated_at", "n"])
    try expect(own(#","own":{},"delete":null"#)?.deletion == nil)
  }

  @Test(arguments: [
    (#","own":[]"#, "wrong_type", "own"), (#","own":{"rows":1}"#, "unknown_field", "own/rows"),
    (#","own":{"columns":"n"}"#, "wrong_type", "own/columns"),
    (#","own":{"columns":["n","n"]}"#, "invalid_value", "own/columns/1"),
    (#","own":{"columns":["n","drop table"]}"#, "invalid_value", "own/columns/1"),
    (#","own":{"columns":["id"]}"#, "invalid_value", "own/columns/0"),
    (#","own":{"columns":["n","org_id"]}"#, "invalid_value", "own/columns/1"),
    (#","own":{"columns":["user_id"]}"#, "invalid_value", "own/columns/0"),
    (#","own":{"columns":["updated_at"]}"#, "invalid_value", "own/columns/0"),
    (#","own":{"columns":["deleted_at"]}"#, "invalid_value", "own/columns/0"),
    (#","own":{"days":0}"#, "invalid_value", "own/days"),
    (#","own":{"days":36501}"#, "invalid_value", "own/days"),
    (#","own":{"days":"1"}"#, "wrong_type", "own/days"),
    (#","own":{"time":"other"}"#, "invalid_value", "own/time"),
    (#","own":{"columns":["n"],"time":"at"}"#, "invalid_value", "own/time"),
    (#","own":{"time":7}"#, "wrong_type", "own/time"),
    (#","own":{},"change":[]"#, "wrong_type", "change"),
    (#","own":{},"change":{"rows":1}"#, "unknown_field", "change/rows"),
    (#","own":{},"change":{"columns":["n","other"]}"#, "invalid_value", "change/columns/1"),
    (
      #","own":{"columns":["n"]},"change":{"columns":["n","note"]}"#, "invalid_value",
      "change/columns/1"
    ),
    (#","own":{},"change":{"columns":[]}"#, "invalid_value", "change/columns"),
    (#","own":{"columns":["other"]},"change":{}"#, "invalid_value", "change/columns"),
    (#","own":{},"change":{"function":"a b"}"#, "invalid_value", "change/function"),
    (#","own":{},"change":{"id":"a b"}"#, "invalid_value", "change/id"),
    (#","own":{},"change":{"id":7}"#, "wrong_type", "change/id"),
    // The library sets this column with each change.
    (#","own":{},"change":{"id":"id"}"#, "invalid_value", "change/id"),
    (#","own":{},"change":{"id":"updated_at"}"#, "invalid_value", "change/id"),
    (#","own":{},"change":{"id":"n"}"#, "invalid_value", "change/id"),
    (#","own":{},"delete":"gone""#, "invalid_value", "delete"),
    (#","own":{},"delete":true"#, "wrong_type", "delete"),
    // Only what is kept is corrected.
    (#","change":{}"#, "missing_field", "own"), (#","delete":"row""#, "missing_field", "own"),
  ])
  func everyMistakeNamesItsField(_ members: String, _ code: String, _ field: String) {
    expect(refused(members), equals: "request.\(code) /backend/queue/a/\(field)")
  }

  /// The server can set the column `user_id`, so that no item carries it.
  @Test func aUserNeedsNoColumnOfTheItems() throws {
    try expect(own(#","own":{}"#, columns: #""n""#)?.columns, equals: ["n"])
  }
}
