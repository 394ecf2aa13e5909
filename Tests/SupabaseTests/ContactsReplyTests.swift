import Base
import Testing

@testable import Supabase

@Suite struct ContactsReplyTests {
  @Test("A page, tombstones among it; timestamps as the server wrote them")
  func page() throws {
    let rows = try #require(
      ContactsReply.rows(
        try json(
          #"[{"id":"\#(idText)","org_id":"\#(orgText)","name":"Åse","municipality":null,"#
            + #""updated_at":"2026-01-01T00:00:01.123456+00:00","deleted_at":null},"#
            + #" {"id":"\#(otherText)","name":"Bo","updated_at":"2026-01-01T00:00:02+00:00","#
            + #""deleted_at":"2026-01-02T00:00:00+00:00"},"#
            + #"{"id":"\#(idText)","updated_at":"infinity"}]"#)))
    #expect(rows.map { $0.deleted } == [false, true, false])
    #expect(rows[0].updatedAt == "2026-01-01T00:00:01.123456+00:00")
    #expect(rows[0].json["name"]?.string == "Åse")
    #expect(rows[1].id.text == otherText)
    #expect(ContactsReply.rows(try json("[]"))?.isEmpty == true)
  }

  @Test(
    "What is no page is none: nothing is applied of it",
    arguments: [
      "{}", "[7]", "[{}]", #"[{"id":"\#(idText)"}]"#, #"[{"id":"x","updated_at":"a"}]"#,
      #"[{"id":"\#(idText)","updated_at":7}]"#, #"[{"id":"\#(idText)","updated_at":""}]"#,
      #"[{"id":"\#(idText)","updated_at":"a\"),or=(x"}]"#,
      #"[{"id":"\#(idText)","updated_at":"2026-01-01T00:00:01Z"},{}]"#,
    ])
  func noPage(body: String) throws {
    #expect(ContactsReply.rows(try json(body)) == nil)
    #expect(ContactsReply.rows(nil) == nil)
  }

  @Test("The ids that are there")
  func ids() throws {
    #expect(
      ContactsReply.ids(try json(#"[{"id":"\#(idText)"}]"#)) == [try uuid(idText)])
    #expect(ContactsReply.ids(try json("[{}]")) == nil)
    #expect(ContactsReply.ids(nil) == nil)
  }
}
