import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct PulledRowsTests {
  private typealias Page = (of: RowsPage, rows: [PulledRow])

  private func page(_ body: String, of org: String = orgText) throws -> Page? {
    guard let answer = try answer(body) else { return nil }
    var rows: [PulledRow] = []
    let source = RowSource.contacts(
      try backend(#","contacts":{"columns":["name","municipality"]}"#), org: try uuid(org))
    let page = RowsPage(answer, of: source) { rows.append($0) }
    return (page, rows)
  }

  private func row(_ more: String, id: String = idText) -> String {
    #"{"id":"\#(id)","org_id":"\#(orgText)","updated_at":"2026-01-01T00:00:01.5+00:00"\#(more)}"#
  }

  @Test("A page with tombstones; timestamps stay as the server wrote them")
  func rows() throws {
    let page = try #require(
      try page(
        "[" + row(#","name":"Åse","municipality":null,"deleted_at":null,"phone":"1""#) + ","
          + row(#","deleted_at":"2026-01-02T00:00:00+00:00""#, id: otherText) + "]"))
    expect(page.of.page.count == 2 && page.of.page.skipped == 0 && page.rows.count == 2)
    expect(page.rows[0].updatedAt, equals: "2026-01-01T00:00:01.5+00:00")
    let kept = try json(try #require(page.rows[0].text).string)
    expect(
      kept == [
        "id": .string(idText), "org_id": .string(orgText), "name": "Åse", "municipality": nil,
      ], "what was not asked for is not kept")
    expect(page.rows[0].name == "Åse" && page.rows[0].municipality == "")
    expect(page.rows[1].id.text, equals: otherText)
    expect(page.rows[1].text.map { $0.count }, equals: nil, "a tombstone has nothing to keep")
    expect(page.of.page.last?.id.text, equals: otherText)
    let empty = try #require(try self.page("[]"))
    expect(empty.of.page.count == 0 && empty.of.page.last == nil && empty.of.page.isLast)
  }

  @Test("A row that costs too much is counted, and the others of a long page are used")
  func expensiveRow() throws {
    let costly = "[" + String(repeating: "{},", count: 20_000) + "{}]"
    let usable = Array(repeating: row(#","name":"Åse""#), count: 3_000)
    let rows = usable + [row(#","name":"x","municipality":\#(costly)"#)] + usable
    let page = try #require(try page("[" + rows.joined(separator: ",") + "]"))
    expect(page.of.page.count == 6_001 && page.of.page.skipped == 1 && page.rows.count == 6_000)
  }

  @Test("Bodies that are not pages", arguments: ["{}", #"{"rows":[]}"#])
  func noPage(body: String) throws {
    try expect(page(body) == nil)
    try expect(answer(body) == nil)
  }

  @Test(
    "An unusable row is counted, and the others are used",
    arguments: [
      "7", "{}", #"{"id":"\#(idText)"}"#, #"{"id":"x","updated_at":"2026-01-01T00:00:01Z"}"#,
    ])
  func withoutPlace(bad: String) throws {
    let page = try #require(try page("[" + row(#","name":"Bo""#) + "," + bad + "]"))
    expect(page.of.page.count == 2 && page.of.page.skipped == 1 && page.rows.count == 1)
    expect(page.of.page.last?.id.text, equals: idText)
  }

  @Test(
    "An unusable row with a position still moves the cursor",
    arguments: [
      "", #","name":null"#, #","name":7"#, #","name":"Bo","municipality":[]"#,
      #","name":"Bo","deleted_at":true"#,
      #","name":"\#(String(repeating: "x", count: RowsPage.maxBytes))""#,
    ])
  func unusable(more: String) throws {
    let page = try #require(try page("[" + row(more) + "]"))
    expect(page.of.page.count == 1 && page.of.page.skipped == 1 && page.rows.isEmpty)
    expect(page.of.page.last?.id.text, equals: idText)
  }

  @Test("A row of another organisation is not used")
  func stranger() throws {
    let page = try #require(
      try page("[" + row(#","name":"Bo""#) + "]", of: otherText))
    expect(page.of.page.skipped == 1 && page.rows.isEmpty)
  }

  private func ownPage(_ more: String, time: String = "occurred_at") throws -> Page {
    let kind = try #require(
      try backend(
        #","queue":{"activity":{"table":"activities","columns":["minutes","occurred_at","user_id"],"#
          + #""own":{"time":"\#(time)"},"delete":"deleted_at"}}"#
      ).kind("activity"))
    let source = try #require(
      RowSource.own(kind, org: try uuid(orgText), user: try uuid(otherText), nowMS: 0))
    var rows: [PulledRow] = []
    let page = RowsPage(try #require(try answer("[" + row(more) + "]")), of: source) {
      rows.append($0)
    }
    return (page, rows)
  }

  @Test("An own row has the time by which it is listed, and no columns but those that are kept")
  func own() throws {
    let text =
      #","minutes":30,"occurred_at":"1970-01-01T01:00:00+01:00","deleted_at":null,"note":"x""#
    let row = try #require(try ownPage(text).rows.first)
    expect(row.listedMS, equals: 0)
    let kept = try json(try #require(row.text).string)
    expect(
      kept == [
        "id": .string(idText), "updated_at": "2026-01-01T00:00:01.5+00:00", "minutes": 30,
        "occurred_at": "1970-01-01T01:00:00+01:00",
      ])
    try expect(
      ownPage(text, time: "updated_at").rows.first?.listedMS, equals: 1_767_225_601_500)
    try expect(ownPage(#","deleted_at":"2026-01-02T00:00:00Z""#).rows.first?.text == nil)
  }

  @Test("An own row without its time is counted", arguments: ["", "null", "7", #""soon""#])
  func ownWithoutTime(time: String) throws {
    let page = try ownPage(time.isEmpty ? "" : #","occurred_at":\#(time)"#)
    expect(page.rows.isEmpty && page.of.page.skipped == 1)
    expect(page.of.page.fault?.column, equals: "occurred_at")
  }

  @Test("The ids and versions")
  func versions() throws {
    let page = VersionsPage(
      try #require(
        try answer("[" + row("") + #",{},7,{"id":"\#(otherText)","updated_at":null}]"#)))
    expect(page.page.count == 4 && page.page.skipped == 2 && !page.page.isLast)
    expect(page.rows.map { $0.id.text }, equals: [idText, otherText])
    expect(page.rows.map { $0.version }, equals: ["2026-01-01T00:00:01.5+00:00", nil])
  }
}
