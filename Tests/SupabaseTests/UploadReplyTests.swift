import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct UploadReplyTests {
  @Test("The ids of an upload into a table: recorded from PostgREST 14.17")
  func storedIDs() throws {
    let some = try answer("[{\"id\":\"\(idText)\"}, \n {\"id\":\"\(otherText)\"}]")
    expect(UploadReply.storedIDs(some)?.map { $0.text }, equals: [idText, otherText])
    expect(UploadReply.storedIDs(try answer("[]")), equals: [])
    expect(
      UploadReply.storedIDs(
        try answer(#"[{"id":"\#(idText)","minutes":5,"note":"x","created_at":null}]"#))?.count,
      equals: 1)
  }

  @Test(
    "A body that is not a list of rows is refused",
    arguments: [
      "{}", "[7]", "[null]", "[{}]", #"[{"id":7}]"#, #"[{"id":"x"}]"#, #"["61cb3aa1"]"#,
      #"[{"id":"\#(idText)"},{"id":null}]"#, #"{"id":"\#(idText)"}"#,
    ])
  func noIDs(body: String) throws {
    expect(UploadReply.storedIDs(try answer(body)), equals: nil)
    expect(UploadReply.storedIDs(nil), equals: nil)
  }

  @Test("The results of an upload function")
  func rows() throws {
    let rows = try #require(
      UploadReply.rows(
        try answer(
          #"[{"id":"\#(idText)","status":"stored","sqlstate":null,"message":null,"column":null},"#
            + #"{"id":"\#(idText)","status":"duplicate","sqlstate":null,"message":null,"column":null},"#
            + #"{"id":"00000000-0000-4000-8000-000000000003","status":"conflict"},"#
            + #"{"id":"\#(otherText)","status":"rejected","sqlstate":"23514","#
            + #""message":"new row for relation \"activities\" violates check constraint "#
            + #"\"activities_minutes_check\"","column":"minutes","new":[]}]"#)))
    expect(rows.map { $0.status }, equals: [.stored, .duplicate, .conflict, .rejected])
    expect(rows[0], equals: RowResult(id: try uuid(idText), status: .stored))
    expect(rows[3].id.text, equals: otherText)
    expect(rows[3].sqlstate == "23514" && rows[3].column == "minutes")
    expect(rows[3].message?.contains("minutes_check"), equals: true)
  }

  @Test("Without a column in the result, it is read from the message")
  func columns() throws {
    func column(_ named: String) throws -> String? {
      UploadReply.rows(
        try answer(
          #"[{"id":"\#(idText)","status":"rejected","sqlstate":"23502","#
            + #""message":"null value in column \"type\" of relation \"activities\" violates …","#
            + #""column":\#(named)}]"#))?.first?.column
    }
    try expect(column("null"), equals: "type")
    try expect(column(#""no such column""#), equals: "type")
    try expect(column("7"), equals: "type")
    try expect(column(#""minutes""#), equals: "minutes")
  }

  @Test("Results of an id that contradict each other are left out")
  func contradictions() throws {
    let rows = UploadReply.rows(
      try answer(
        #"[{"id":"\#(idText)","status":"stored"},{"id":"\#(otherText)","status":"stored"},"#
          + #"{"id":"\#(idText)","status":"rejected"}]"#))
    expect(rows?.map { $0.id.text }, equals: [otherText])
  }

  @Test("Rows without an id are left out")
  func withoutID() throws {
    let rows = UploadReply.rows(
      try answer(#"[{"id":null,"status":"rejected"},{"id":"\#(idText)","status":"stored"}]"#))
    expect(rows?.count, equals: 1)
    expect(UploadReply.rows(try answer("[]")), equals: [])
  }

  @Test(
    "A body that is not a list of results is refused",
    arguments: [
      "{}", "[7]", "[{}]", #"[{"id":"\#(idText)"}]"#, #"[{"id":"\#(idText)","status":"ok"}]"#,
      #"[{"id":"\#(idText)","status":"STORED"}]"#, #"[{"id":"\#(idText)","status":1}]"#,
    ])
  func noRows(body: String) throws {
    expect(UploadReply.rows(try answer(body)), equals: nil)
    expect(UploadReply.rows(nil), equals: nil)
  }
}
