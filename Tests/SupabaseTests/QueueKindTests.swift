import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct QueueKindTests {
  private func kind(_ name: String, _ config: String) throws -> QueueKind {
    let backend = try backend(#","queue":{"\#(name)":\#(config)}"#)
    expect(backend.kinds.count, equals: 1)
    return try #require(backend.kind(name))
  }

  private func refused(_ queue: String) -> String? {
    refusal { () throws(Failure) in try backend(#","queue":\#(queue)"#) }
  }

  @Test("The kinds of the example backend")
  func standard() throws {
    let backend = try backend()
    let activity = try #require(backend.kind("activity"))
    expect(activity.table, equals: "activities")
    expect(
      activity.columns, equals: ["type", "minutes", "occurred_at", "contact_id", "follows", "note"])
    expect(activity.upload, equals: .table)
    expect(activity.function, equals: "submit_activities")
    expect(activity.references, equals: ["contact_id", "follows"])
    expect(activity.hasUser)
    let contact = try #require(backend.kind("contact"))
    expect(contact.table, equals: "contacts")
    expect(contact.columns, equals: ["name", "municipality", "relation"])
    expect(!contact.hasUser && contact.references.isEmpty && contact.function.isEmpty)
    let details = try #require(backend.kind("contact_details"))
    expect(details.table, equals: "contact_details")
    expect(details.columns, equals: ["contact_id", "phone", "address", "national_id"])
    expect(details.references, equals: ["contact_id"])
    expect(!details.hasUser && details.upload == .table && details.function.isEmpty)
    expect(backend.kind("other") == nil)
  }

  @Test("A row has its kind's columns and those that the engine adds, and no others")
  func accepted() throws {
    let backend = try backend()
    let activity = try #require(backend.kind("activity"))
    let contact = try #require(backend.kind("contact"))
    for column in ["id", "org_id", "user_id", "minutes", "name", "ID", ""] {
      let isCommon = column == "id" || column == "org_id"
      expect(
        activity.accepts(column), equals: (isCommon || column == "user_id" || column == "minutes"))
      expect(contact.accepts(column), equals: (isCommon || column == "name"))
    }
  }

  @Test("Absent members come from the standard kind of the same name")
  func inherited() throws {
    let activity = try kind("activity", #"{"table":"visits","upload":"rpc"}"#)
    expect(activity.table, equals: "visits")
    expect(activity.upload == .rpc && activity.function == "submit_activities")
    expect(activity.columns.contains("minutes") && activity.hasUser)
    let short = try kind("activity", #"{"table":"visits","columns":["minutes","follows"]}"#)
    expect(short.columns, equals: ["minutes", "follows"])
    expect(short.references, equals: ["follows"])
  }

  @Test("A new kind; columns that end in _id may refer to other rows")
  func own() throws {
    let own = try kind(
      "meeting",
      #"{"table":"meetings","columns":["id","org_id","user_id","room_id","_id","title"],"#
        + #""upload":"rpc","function":"submit_meetings"}"#)
    expect(own.columns, equals: ["room_id", "_id", "title"])
    expect(own.references, equals: ["room_id", "_id"])
    expect(own.hasUser)
    expect(own.function, equals: "submit_meetings")
    try expect(!kind("meeting", #"{"table":"m","columns":["title"]}"#).hasUser)
  }

  @Test("The primary key is `id`, or contains the organisation")
  func primaryKey() throws {
    try expect(kind("activity", #"{"table":"a"}"#).primaryKey, equals: .id)
    try expect(kind("activity", #"{"table":"a","primary_key":"id"}"#).primaryKey, equals: .id)
    let both = try kind("activity", #"{"table":"a","primary_key":"id_and_org_id"}"#)
    expect(both.primaryKey, equals: .idAndOrgID)
    expect(
      refused(#"{"a":{"table":"a","columns":["x"],"primary_key":"org_id"}}"#),
      equals: "request.invalid_value /backend/queue/a/primary_key")
  }

  @Test("An empty queue object has no kinds")
  func none() throws {
    try expect(backend(#","queue":{}"#).kinds.isEmpty)
  }

  @Test("Every failure names its field")
  func mistakes() {
    expect(refused("[]"), equals: "request.wrong_type /backend/queue")
    expect(refused(#"{"a":[]}"#), equals: "request.wrong_type /backend/queue/a")
    expect(refused(#"{"a":{}}"#), equals: "request.missing_field /backend/queue/a/table")
    expect(refused(#"{"A":{"table":"a"}}"#), equals: "request.invalid_value /backend/queue/A")
    expect(refused(#"{"a/b":{"table":"a"}}"#), equals: "request.invalid_value /backend/queue/a~1b")
    expect(
      refused(#"{"a":{"table":"a"}}"#), equals: "request.missing_field /backend/queue/a/columns")
    expect(
      refused(#"{"a":{"table":"a","columns":["id"]}}"#),
      equals: "request.invalid_value /backend/queue/a/columns")
    expect(
      refused(#"{"a":{"table":"a","columns":["x","y","x"]}}"#),
      equals: "request.invalid_value /backend/queue/a/columns/2")
    expect(
      refused(#"{"a":{"table":"a","columns":["x","drop table"]}}"#),
      equals: "request.invalid_value /backend/queue/a/columns/1")
    expect(
      refused(#"{"a":{"table":"a","columns":["x"],"upload":"rpc"}}"#),
      equals: "request.missing_field /backend/queue/a/function")
    expect(
      refused(#"{"a":{"table":"a","columns":["x"],"upload":"rcp"}}"#),
      equals: "request.invalid_value /backend/queue/a/upload")
    expect(
      refused(#"{"a":{"table":"a","columns":["x"],"refs":[]}}"#),
      equals: "request.unknown_field /backend/queue/a/refs")
  }
}
