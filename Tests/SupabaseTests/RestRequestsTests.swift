import Base
import TestSupport
import Testing

@testable import Supabase

/// The requests as they are sent, line by line.
@Suite struct RestRequestsTests {
  private let headers =
    #""headers":{"apikey":"sb_publishable_k","Accept":"application/json","#
    + #""X-Client-Info":"holdfast/0.2.0""#
  private let bearer = #""Authorization":"Bearer a.b.c""#
  private let url = #""url":"https://x.supabase.co/rest/v1"#

  private func url(_ request: Request) throws -> String {
    expect(request.url.utf8.allSatisfy { VisibleASCII.contains($0) })
    expect(request.method == "GET" && request.body == nil)
    return try #require(
      request.url.split(separator: "/rest/v1", maxSplits: 1).last.map(String.init))
  }

  @Test("Memberships with their organisations")
  func memberships() throws {
    let request = RestRequests.memberships(try backend(), bearer: try secret("a.b.c"))
    try expect(
      rendered(request),
      equals: #"{"id":1,"purpose":"guard","method":"GET",\#(url)/memberships?"#
        + #"select=org_id,role,status,updated_at,organizations(id,name,status)"#
        + #"&order=org_id.asc,status.asc&limit=500",\#(headers),"Prefer":"count=exact","#
        + #"\#(bearer)},"body":null,"timeout_ms":10000}"#)
  }

  @Test("Memberships of one user, if the server's policies show others")
  func ownMemberships() throws {
    let request = RestRequests.memberships(
      try backend(), user: try uuid(userText), after: try uuid(orgText),
      bearer: try secret("a.b.c"))
    try expect(
      url(request).hasSuffix(
        "&user_id=eq.\(userText)&org_id=gt.\(orgText)&order=org_id.asc,status.asc&limit=500"))
  }

  @Test("Rows into a table: duplicates are skipped, absent values get their default")
  func uploadToTable() throws {
    let backend = try backend()
    let request = RestRequests.upload(
      backend, kind: try #require(backend.kind("activity")), columns: ["id", "org_id", "minutes"],
      rows: [try json(#"{"id":"\#(idText)","minutes":45}"#), try json(#"{"note":"å\"n"}"#)],
      bearer: try secret("a.b.c"))
    try expect(
      rendered(request),
      equals: #"{"id":1,"purpose":"upload","method":"POST",\#(url)/activities?"#
        + #"columns=id,org_id,minutes&on_conflict=id&select=id",\#(headers),"#
        + #""Prefer":"resolution=ignore-duplicates,return=representation,missing=default","#
        + #"\#(bearer),"Content-Type":"application/json"},"#
        + #""body":"[{\"id\":\"\#(idText)\",\"minutes\":45},{\"note\":\"å\\\"n\"}]","#
        + #""timeout_ms":60000}"#)
  }

  @Test("Rows through a function")
  func uploadToFunction() throws {
    let backend = try backend(#","queue":{"activity":{"table":"activities","upload":"rpc"}}"#)
    let request = RestRequests.upload(
      backend, kind: try #require(backend.kind("activity")), columns: ["id"],
      rows: [["id": .string(idText)]], bearer: try secret("a.b.c"))
    try expect(
      rendered(request),
      equals:
        #"{"id":1,"purpose":"upload","method":"POST",\#(url)/rpc/submit_activities",\#(headers),"#
        + #"\#(bearer),"Content-Type":"application/json"},"#
        + #""body":"{\"items\":[{\"id\":\"\#(idText)\"}]}","timeout_ms":60000}"#)
  }

  @Test("Reading back 150 ids keeps the URL below 8 kB")
  func readBack() throws {
    let backend = try backend()
    let kind = try #require(backend.kind("contact"))
    let two = RestRequests.readBack(
      backend, kind: kind, org: try uuid(orgText), ids: [try uuid(idText), try uuid(otherText)],
      bearer: try secret("a.b.c"))
    try expect(url(two), equals: "/contacts?id=in.(\(idText),\(otherText))&select=id")
    expect(two.purpose == .upload && two.timeoutMS == 30_000)
    let many = RestRequests.readBack(
      backend, kind: kind, org: nil, ids: (0..<150).map { UUID(high: .max, low: UInt64($0)) },
      bearer: try secret("a.b.c"))
    expect(many.url.utf8.count < 8_000)
  }

  @Test("Of a kind whose rows are kept, only the user's own rows are read back")
  func ownRowsReadBack() throws {
    let backend = try backend(
      #","queue":{"activity":{"table":"activities","columns":["type","user_id"],"own":{}}}"#)
    let kind = try #require(backend.kind("activity"))
    let request = RestRequests.readBack(
      backend, kind: kind, org: try uuid(orgText), user: try uuid(otherText),
      ids: [try uuid(idText)], bearer: try secret("a.b.c"))
    try expect(
      url(request), equals: "/activities?id=in.(\(idText))&user_id=eq.\(otherText)&select=id")
  }

  @Test("Where the key contains the organisation, it names the conflict and is a filter")
  func keyWithOrganisation() throws {
    let backend = try backend(
      #","queue":{"activity":{"table":"activities","primary_key":"id_and_org_id"}}"#)
    let kind = try #require(backend.kind("activity"))
    let upload = RestRequests.upload(
      backend, kind: kind, columns: ["id"], rows: [], bearer: try secret("a.b.c"))
    expect(upload.url.hasSuffix("/activities?columns=id&on_conflict=id,org_id&select=id"))
    let filtered = RestRequests.readBack(
      backend, kind: kind, org: try uuid(orgText), ids: [try uuid(idText)],
      bearer: try secret("a.b.c"))
    try expect(
      url(filtered), equals: "/activities?id=in.(\(idText))&org_id=eq.\(orgText)&select=id")
    let many = RestRequests.readBack(
      backend, kind: kind, org: try uuid(orgText),
      ids: (0..<150).map { UUID(high: .max, low: UInt64($0)) }, bearer: try secret("a.b.c"))
    expect(many.url.utf8.count < 8_000)
  }

  @Test("The first page of contacts, without network-only columns")
  func firstPage() throws {
    let request = RestRequests.page(
      try backend(), try contacts(), after: nil, limit: 500, bearer: try secret("a.b.c"))
    try expect(
      url(request),
      equals: "/contacts?select=id,org_id,name,municipality,relation,updated_at,deleted_at"
        + "&org_id=eq.\(orgText)&order=updated_at.asc,id.asc&limit=500")
    expect(request.purpose == .pull && request.timeoutMS == 30_000)
    for column in try backend().needsNetwork { expect(!request.url.contains(column)) }
  }

  @Test("The next page, after the server's timestamp")
  func nextPage() throws {
    let cursor = Cursor(updatedAt: "2026-01-01T00:00:01.123456+00:00", id: try uuid(idText))
    let request = RestRequests.page(
      try backend(), try contacts(#","contacts":{"columns":["name","updated_at"]}"#),
      after: cursor, limit: 2, bearer: try secret("a.b.c"))
    let moment = "%222026-01-01T00%3A00%3A01.123456%2B00%3A00%22"
    try expect(
      url(request),
      equals: "/contacts?select=id,org_id,name,updated_at,deleted_at&org_id=eq.\(orgText)"
        + "&updated_at=gte.2026-01-01T00%3A00%3A01.123456%2B00%3A00"
        + "&or=(updated_at.gt.\(moment),and(updated_at.eq.\(moment),id.gt.\(idText)))"
        + "&order=updated_at.asc,id.asc&limit=2")
  }

  @Test("A manipulated cursor cannot add a filter")
  func nastyCursor() throws {
    let cursor = Cursor(updatedAt: "x\"),id.gt.0&select=*#", id: try uuid(idText))
    let request = RestRequests.page(
      try backend(), try contacts(), after: cursor, limit: 1, bearer: try secret("a.b.c"))
    let parameters = try url(request).split(separator: "&")
    expect(parameters.filter { $0.contains("select=") }.count, equals: 1)
    expect(parameters.count, equals: 6)
    expect(!request.url.contains("#") && !request.url.contains("\""))
  }

  @Test("Contacts by id, with the columns of a page")
  func some() throws {
    let request = RestRequests.rows(
      try backend(), try contacts(), ids: [try uuid(idText), try uuid(otherText)],
      bearer: try secret("a.b.c"))
    try expect(
      url(request),
      equals: "/contacts?select=id,org_id,name,municipality,relation,updated_at,deleted_at"
        + "&org_id=eq.\(orgText)&id=in.(\(idText),\(otherText))")
    expect(request.purpose, equals: .pull)
    for column in try backend().needsNetwork { expect(!request.url.contains(column)) }
  }

  @Test("Ids and versions, page by page")
  func versions() throws {
    let first = RestRequests.versions(
      try backend(), try contacts(), after: nil, limit: 1_000, bearer: try secret("a.b.c"))
    try expect(
      url(first),
      equals: "/contacts?select=id,updated_at&org_id=eq.\(orgText)&deleted_at=is.null&order=id.asc"
        + "&limit=1000")
    let next = RestRequests.versions(
      try backend(), try contacts(), after: try uuid(idText), limit: 1_000,
      bearer: try secret("a.b.c"))
    try expect(url(next).contains("&deleted_at=is.null&id=gt.\(idText)&order=id.asc&"))
    expect(first.purpose, equals: .pull)
  }

  private func own(_ more: String = "") throws -> RowSource {
    let kind = try #require(
      try backend(
        #","queue":{"activity":{"table":"activities","columns":["minutes","occurred_at","user_id"],"#
          + #""own":{"columns":["minutes","occurred_at"],"days":1}\#(more)}}"#
      ).kind("activity"))
    return try #require(
      RowSource.own(kind, org: try uuid(orgText), user: try uuid(otherText), nowMS: 86_400_000))
  }

  @Test("Own rows: the user's, of the last days, with their columns")
  func ownRows() throws {
    let rows =
      "&org_id=eq.\(orgText)&user_id=eq.\(otherText)"
      + "&occurred_at=gte.1970-01-01T00%3A00%3A00.000Z"
    let page = RestRequests.page(
      try backend(), try own(), after: nil, limit: 500, bearer: try secret("a.b.c"))
    try expect(
      url(page),
      equals: "/activities?select=id,updated_at,minutes,occurred_at,org_id" + rows
        + "&order=updated_at.asc,id.asc&limit=500")
    let marked = try own(#","delete":"deleted_at""#)
    let next = RestRequests.page(
      try backend(), marked, after: nil, limit: 500, bearer: try secret("a.b.c"))
    try expect(url(next).contains("select=id,updated_at,deleted_at,minutes,occurred_at,org_id&"))
    // Without marks no column of them may be named.
    for (source, mark) in [(try own(), ""), (marked, "&deleted_at=is.null")] {
      let versions = RestRequests.versions(
        try backend(), source, after: nil, limit: 9, bearer: try secret("a.b.c"))
      try expect(
        url(versions),
        equals: "/activities?select=id,updated_at" + rows + mark + "&order=id.asc&limit=9")
    }
  }

  @Test("One contact, live, with network-only columns")
  func live() throws {
    let request = RestRequests.contactLive(
      try backend(), id: try uuid(idText), columns: ["id", "name", "phone"],
      bearer: try secret("a.b.c"))
    try expect(url(request), equals: "/contacts?select=id,name,phone&id=eq.\(idText)")
    expect(request.purpose == .live && request.timeoutMS == 30_000)
  }

  @Test("The summary of an organisation")
  func summary() throws {
    let request = RestRequests.summary(
      try backend(), org: try uuid(orgText), bearer: try secret("a.b.c"))
    try expect(
      rendered(request),
      equals:
        #"{"id":1,"purpose":"summary","method":"POST",\#(url)/rpc/activity_summary",\#(headers),"#
        + #"\#(bearer),"Content-Type":"application/json"},"#
        + #""body":"{\"org\":\"\#(orgText)\"}","timeout_ms":30000}"#)
  }

  @Test("Every purpose has the name of the header")
  func purposes() {
    expect(
      Purpose.allCases.map { $0.rawValue },
      equals: [
        "refresh", "validate", "guard", "upload", "pull", "summary", "revoke", "live", "sign_in",
      ])
  }
}
