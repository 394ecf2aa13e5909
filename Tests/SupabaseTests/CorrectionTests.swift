import Base
import TestSupport
import Testing

@testable import Supabase

/// The requests that change or delete stored rows, as they are sent.
@Suite struct CorrectionTests {
  private static let version = "2026-01-01T10:00:00.5+00:00"
  private static let changeText = "22222222-2222-4222-8222-222222222222"
  private let found =
    "?id=eq.\(idText)&updated_at=eq.2026-01-01T10%3A00%3A00.5%2B00%3A00&select=id,updated_at"

  private func correction(_ columns: String?) throws -> Correction {
    Correction(
      id: try uuid(idText), version: Self.version, columns: try columns.map { try json($0) },
      changeID: try uuid(Self.changeText))
  }

  private func request(_ members: String, _ corrections: Correction..., org: UUID? = nil) throws
    -> Request?
  {
    let backend = try backend(
      #","queue":{"a":{"table":"t","columns":["user_id","n"],"own":{}\#(members)}}"#)
    return RestRequests.correct(
      backend, kind: try #require(backend.kind("a")), org: org, corrections,
      bearer: try secret("a.b.c"))
  }

  private func sent(_ request: Request?) throws -> String {
    let request = try #require(request)
    expect(request.purpose == .upload && request.timeoutMS == 60_000)
    expect(request.url.utf8.allSatisfy { VisibleASCII.contains($0) })
    let path = request.url.split(separator: "/rest/v1", maxSplits: 1).last ?? ""
    let body = try request.body.map { " " + (try $0.text().string) } ?? ""
    return "\(request.method.string ?? "") \(path)\(body)"
  }

  @Test func aChangeNamesTheRowAndItsVersionAndHasTheChangedColumns() throws {
    let request = try request(#","change":{}"#, try correction(#"{"n":2}"#))
    try expect(sent(request), equals: #"PATCH /t\#(found) {"n":2}"#)
    // The answer names what was changed.
    try expect(rendered(#require(request)).contains(#""Prefer":"return=representation""#))
  }

  @Test func aChangeHasItsIDWhereTheTableHasAColumnForIt() throws {
    let change = try correction(#"{"n":2}"#)
    try expect(
      sent(request(#","change":{"id":"change_id"}"#, change)),
      equals: #"PATCH /t\#(found) {"n":2,"change_id":"\#(Self.changeText)"}"#)
    // The change itself stays as it is.
    expect(change.columns?.count, equals: 1)
  }

  @Test func aRowIsTakenBackByItsColumn() throws {
    try expect(
      sent(request(#","delete":"deleted_at""#, try correction(nil))),
      equals: #"PATCH /t\#(found) {"deleted_at":"now"}"#)
    try expect(
      sent(request(#","change":{"id":"change_id"},"delete":"deleted_at""#, try correction(nil))),
      equals: #"PATCH /t\#(found) {"deleted_at":"now","change_id":"\#(Self.changeText)"}"#)
  }

  @Test func aRowIsDeleted() throws {
    try expect(
      sent(request(#","change":{"id":"change_id"},"delete":"row""#, try correction(nil))),
      equals: "DELETE /t\(found)")
    // A change of such a kind is no deletion.
    try expect(
      sent(request(#","change":{},"delete":"row""#, try correction(#"{"n":2}"#))),
      equals: #"PATCH /t\#(found) {"n":2}"#)
  }

  @Test func theOrganisationIsAFilterWhereItIsAPartOfTheKey() throws {
    let org = try uuid(orgText)
    try expect(
      sent(request(#","change":{}"#, try correction(#"{"n":2}"#), org: org)),
      equals: #"PATCH /t\#(found) {"n":2}"#)
    let keyed = found.replacing("&updated_at", with: "&org_id=eq.\(orgText)&updated_at")
    try expect(
      sent(
        request(
          #","change":{},"primary_key":"id_and_org_id""#, try correction(#"{"n":2}"#), org: org)),
      equals: #"PATCH /t\#(keyed) {"n":2}"#)
  }

  @Test func aFunctionTakesManyChangesAndDeletions() throws {
    let members = #","change":{"function":"change_items"},"delete":"row""#
    let base = #""id":"\#(idText)","updated_at":"\#(Self.version)","#
    try expect(
      sent(request(members, try correction(#"{"n":2}"#), try correction(nil))),
      equals: #"POST /rpc/change_items {"items":[{\#(base)"operation":"change","columns":{"n":2}},"#
        + #"{\#(base)"operation":"delete","columns":{}}]}"#)
    let all = #","change":{"function":"change_items","id":"change_id"}"#
    try expect(
      sent(request(all, try correction(#"{"n":2}"#), org: try uuid(orgText))),
      equals: #"POST /rpc/change_items {"items":[{\#(base)"operation":"change","columns":{"n":2},"#
        + #""org_id":"\#(orgText)","change_id":"\#(Self.changeText)"}]}"#)
  }

  @Test func whereThereIsNothingToDoNothingIsSent() throws {
    try expect(request(#","change":{}"#) == nil)
  }

  @Test func anUploadOfRowsThatAreKeptAsksForTheirVersions() throws {
    let backend = try backend(#","queue":{"a":{"table":"t","columns":["user_id","n"],"own":{}}}"#)
    let upload = RestRequests.upload(
      backend, kind: try #require(backend.kind("a")), columns: ["id"], rows: [],
      bearer: try secret("a.b.c"))
    expect(upload.url.hasSuffix("/t?columns=id&on_conflict=id&select=id,updated_at"))
  }

  @Test(arguments: [
    ("stored", RowResult.Status.stored), ("changed", .changed), ("gone", .gone),
    ("not_allowed", .notAllowed),
  ])
  func aResultHasTheVersionAndTheRowOfOthers(_ word: String, _ status: RowResult.Status) throws {
    let rows = try answer(
      #"[{"id":"\#(idText)","status":"\#(word)","updated_at":"\#(Self.version)","row":{"n":3}}]"#)
    let results = try #require(UploadReply.rows(rows))
    expect(results.map { $0.status }, equals: [status])
    expect(results[0].version, equals: Self.version)
    expect(results[0].row?.int("n"), equals: 3)
  }
}
