import Base
import Policy
import TestSupport
import Testing

@testable import Supabase

@Suite struct HTTPResponseTests {
  private let now: Int64 = 1_790_000_000_000

  private func read(_ complete: String) throws(Failure) -> HTTPResponse {
    let known: [StaticCString] = ["id", "status", "headers", "body", "error"]
    return try HTTPResponse.read(try Fields(try json(complete), known: known), nowMS: now)
  }

  /// A response with this status and body.
  private func response(_ status: Int, _ body: String?) throws -> HTTPResponse {
    let complete: JSON = ["id": 1, "status": .int(status), "body": JSON(body)]
    return try HTTPResponse.read(
      try Fields(complete, known: ["id", "status", "headers", "body", "error"]), nowMS: now)
  }

  // MARK: The members of the host, read strictly

  @Test("No response", arguments: TransportError.allCases)
  func transportErrors(error: TransportError) throws {
    let response = try read(#"{"id":1,"error":"\#(error.rawValue)"}"#)
    expect(response.status, equals: 0)
    expect(response.facts, equals: .none)
    expect(HTTPResponse.timedOut.status == 0 && HTTPResponse.timedOut.facts == .none)
  }

  @Test("Every invalid member names its field")
  func mistakes() {
    func refused(_ complete: String) -> String? {
      refusal { () throws(Failure) in try read(complete) }
    }
    expect(refused(#"{"id":1}"#), equals: "request.missing_field /status")
    expect(
      refused(#"{"id":1,"status":null,"error":null}"#), equals: "request.missing_field /status")
    expect(refused(#"{"id":1,"status":"200"}"#), equals: "request.wrong_type /status")
    for status in [-1, 0, 99, 600, Int.max] {
      expect(refused(#"{"id":1,"status":\#(status)}"#), equals: "request.invalid_value /status")
    }
    expect(refused(#"{"id":1,"error":"Timeout"}"#), equals: "request.invalid_value /error")
    expect(refused(#"{"id":1,"error":true}"#), equals: "request.wrong_type /error")
    expect(
      refused(#"{"id":1,"error":"tls","status":200}"#), equals: "request.invalid_value /status")
    expect(refused(#"{"id":1,"error":"tls","body":""}"#), equals: "request.invalid_value /body")
    expect(
      refused(#"{"id":1,"error":"tls","headers":{}}"#), equals: "request.invalid_value /headers")
    expect(refused(#"{"id":1,"status":200,"body":{}}"#), equals: "request.wrong_type /body")
    expect(refused(#"{"id":1,"status":200,"headers":[]}"#), equals: "request.wrong_type /headers")
    expect(
      refused(#"{"id":1,"status":200,"headers":{"a/b":["x"]}}"#),
      equals: "request.wrong_type /headers/a~1b")
  }

  @Test("Header names are compared without case; the first of several counts")
  func headers() throws {
    for name in ["date", "Date", "DATE", "dAtE"] {
      let response = try read(
        #"{"id":1,"status":200,"headers":{"\#(name)":"Sun, 06 Nov 1994 08:49:37 GMT"}}"#)
      expect(response.dateMS, equals: 784_111_777_000)
    }
    try expect(
      read(#"{"id":1,"status":200,"headers":{"Dates":"x","Dat":"x","":"x"}}"#).dateMS, equals: nil)
    let two = #"{"DATE":"Sun, 06 Nov 1994 08:49:37 GMT","date":"Sun, 06 Nov 1994 08:49:38 GMT"}"#
    try expect(read(#"{"id":1,"status":200,"headers":\#(two)}"#).dateMS, equals: 784_111_777_000)
  }

  @Test(
    "Malformed and unusual dates are absent",
    arguments: ["", "now", "0", "2026-01-01", "Sun, 99 Nov 1994 08:49:37 GMT"])
  func badDates(date: String) throws {
    try expect(read(#"{"id":1,"status":200,"headers":{"date":"\#(date)"}}"#).dateMS, equals: nil)
  }

  @Test("Retry-After in seconds, or as a date compared with the server's clock")
  func retryAfter() throws {
    try expect(
      read(#"{"id":1,"status":503,"headers":{"Retry-After":"7"}}"#).retryAfterMS, equals: 7_000)
    let dates =
      #"{"date":"Sun, 06 Nov 1994 08:49:37 GMT","retry-after":"Sun, 06 Nov 1994 08:50:37 GMT"}"#
    try expect(read(#"{"id":1,"status":503,"headers":\#(dates)}"#).retryAfterMS, equals: 60_000)
    let alone = #"{"retry-after":"Sun, 06 Nov 1994 08:50:37 GMT"}"#
    try expect(read(#"{"id":1,"status":503,"headers":\#(alone)}"#).retryAfterMS, equals: 0)
    try expect(
      read(#"{"id":1,"status":503,"headers":{"retry-after":"soon"}}"#).retryAfterMS, equals: nil)
  }

  // MARK: The body of the server, read tolerantly

  @Test(
    "A body that is not JSON is absent",
    arguments: [
      nil, "", " ", "<html>Logg inn på Wi-Fi</html>", "OK", "null", "7", "\"text\"", "{", "[1,",
      "{}{}", "{'a':1}", "upstream connect error", "\u{FEFF}",
    ] as [String?])
  func noBody(body: String?) throws {
    let response = try response(200, body)
    expect(response.body == nil && response.rows == nil)
    expect(response.facts, equals: ResponseFacts(status: 200))
  }

  @Test("A byte order mark, duplicate keys and unknown members are accepted")
  func tolerance() throws {
    try expect(response(200, "\u{FEFF}{\"a\":1,\"a\":2}").body?["a"]?.int, equals: 2)
    try expect(response(200, #" [ {"new":{"deep":[1]}} ] "#).rows?.count, equals: 1)
  }

  @Test(
    "A row that costs too much is null, of one that is nested too deep what can be read is read",
    arguments: [
      "[" + String(repeating: "{},", count: 8_000) + "{}]",
      String(repeating: "[", count: 70) + String(repeating: "]", count: 70),
    ])
  func expensiveRow(_ value: String) throws {
    let small = String(repeating: #"{"id":1},"#, count: 20_000)
    let rows = try #require(try response(200, "[\(small){\"id\":\(value)},{\"id\":2}]").rows)
    expect(rows.count, equals: 20_002)
    let kind: JSON.Kind? = value.hasPrefix("[{}") ? nil : .array
    expect(Array(rows)[20_000].value["id"]?.kind, equals: kind)
    expect(Array(rows).last?.value.int("id"), equals: 2)
    let torn = try response(200, "[\(small){\"id\":\(value)},{\"id\":2]")
    expect(torn.rows == nil)
  }

  @Test("What is in brackets and begins with no JSON is no array")
  func noArray() throws {
    for body in ["[object Object]", "[<html>]", "[,]", "[{a:1}]", "[error] upstream, [7]"] {
      let response = try response(200, body)
      expect(response.body == nil && response.rows == nil, "\(body)")
    }
  }

  @Test("A body that is nested too deep is absent")
  func deep() throws {
    let response = try response(200, String(repeating: "[", count: 100_000))
    expect(response.body == nil && response.rows == nil)
  }

  @Test(
    "A list may have 131,072 rows, a page of a pull 1,048,576, one answer 8,192; a larger body is absent",
    arguments: Purpose.allCases)
  func manyValues(purpose: Purpose) throws {
    let most =
      switch purpose {
      case .pull: 1_048_576
      case .upload, .membershipCheck: 131_072
      case .refresh, .validate, .summary, .revoke, .live, .signIn: 8_192
      }
    func isRead(rows: Int) throws -> Bool {
      let body = "[" + String(repeating: "1,", count: rows - 1) + "1]"
      let complete: JSON = ["id": 1, "status": 200, "body": .string(body)]
      let fields = try Fields(complete, known: ["id", "status", "headers", "body", "error"])
      return try HTTPResponse.read(fields, nowMS: now, most: purpose.mostValues).rows != nil
    }
    try expect(isRead(rows: most))
    try expect(!isRead(rows: most + 1))
  }

  @Test(
    "Codes of every form",
    arguments: [
      // Auth, 2024-01-01.
      (
        400,
        #"{"code":"refresh_token_not_found","message":"Invalid Refresh Token: Refresh Token Not Found"}"#,
        "refresh_token_not_found", nil, "Invalid Refresh Token: Refresh Token Not Found"
      ),
      // Auth, before 2024-01-01: the numeric code is ignored.
      (
        400,
        #"{"code":400,"error_code":"refresh_token_not_found","msg":"Invalid Refresh Token: Refresh Token Not Found"}"#,
        "refresh_token_not_found", nil, "Invalid Refresh Token: Refresh Token Not Found"
      ),
      (500, #"{"code":500,"msg":"Internal"}"#, nil, nil, "Internal"),
      // Auth, OAuth-style, and servers before v2.164.0.
      (
        400,
        #"{"error":"invalid_grant","error_description":"Invalid Refresh Token: Already Used"}"#,
        nil, "invalid_grant", "Invalid Refresh Token: Already Used"
      ),
      // Auth, a weak password.
      (
        422,
        #"{"code":"weak_password","message":"Password should be at least 6 characters.","weak_password":{"reasons":["length"]}}"#,
        "weak_password", nil, "Password should be at least 6 characters."
      ),
      // Data: recorded from PostgREST 14.17.
      (
        401, #"{"code":"PGRST303","details":null,"hint":null,"message":"JWT expired"}"#, "PGRST303",
        nil, "JWT expired"
      ),
      (
        403,
        #"{"code":"42501","details":null,"hint":null,"message":"new row violates row-level security policy for table \"activities\""}"#,
        "42501", nil, #"new row violates row-level security policy for table "activities""#
      ),
      // Data, when the database stops: an empty code is passed on to Policy.
      (400, #"{"code":"","details":null,"hint":null,"message":""}"#, "", nil, ""),
      // A gateway.
      (401, #"{"message":"No API key found in request"}"#, nil, nil, "No API key found in request"),
      (200, "{}", nil, nil, nil), (200, "[]", nil, nil, nil),
      (400, #"{"code":null,"error_code":7,"error":[],"message":{}}"#, nil, nil, nil),
    ] as [(Int, String, String?, String?, String?)])
  func answers(
    status: Int, body: String, code: String?, oauth: String?, description: String?
  ) throws {
    try expect(
      response(status, body).facts,
      equals: ResponseFacts(
        status: status, code: code, oauthError: oauth, description: description,
        isServerJSON: true))
  }

  @Test("Recorded errors are classified as measured")
  func judged() throws {
    func rest(_ status: Int, _ body: String) throws -> RestOutcome {
      RestClassification.rest(try response(status, body).facts)
    }
    try expect(
      rest(400, #"{"code":"","details":null,"hint":null,"message":""}"#), equals: .transient)
    try expect(
      rest(
        401,
        #"{"code":"42501","details":null,"hint":null,"message":"permission denied for table activities"}"#
      ), equals: .needsToken)
    try expect(
      rest(
        500,
        #"{"code":"57014","details":null,"hint":null,"message":"canceling statement due to statement timeout"}"#
      ), equals: .statementTimeout)
    try expect(rest(201, "[]"), equals: .answered)
    try expect(rest(200, "<html></html>"), equals: .transient)
    expect(
      AuthClassification.refresh(
        try response(400, #"{"code":400,"error_code":"session_expired","msg":"…"}"#).facts),
      equals: .terminal(.sessionExpired))
  }
}
