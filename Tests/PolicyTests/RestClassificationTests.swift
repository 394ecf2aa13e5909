import Policy
import TestSupport
import Testing

/// Responses of the data service as measured on 12.2.12, 13.0.8 and 14.17, and of gateways.
@Suite struct RestClassificationTests {
  private func outcome(_ status: Int, _ code: String?) -> RestOutcome {
    RestClassification.rest(ResponseFacts(status: status, code: code, isServerJSON: true))
  }

  @Test("A success needs the service's body; a portal's page is not a success")
  func success() {
    for status in [200, 201, 206] { expect(outcome(status, nil), equals: .answered) }
    expect(RestClassification.rest(ResponseFacts(status: 204)), equals: .answered)
    expect(RestClassification.rest(ResponseFacts(status: 200)), equals: .transient)
    expect(RestClassification.rest(ResponseFacts(status: 201)), equals: .transient)
  }

  @Test(
    "QUE-3: the faults of a row; whom each blames, BlamePolicyTests say",
    arguments: [
      (400, "23514", MessageCode.serverRule), (400, "23502", .missingValue),
      (400, "22P02", .invalidValue), (400, "22003", .invalidValue), (400, "22007", .invalidValue),
      (400, "22008", .invalidValue), (400, "22P05", .invalidValue), (400, "22021", .invalidValue),
      (400, "22023", .invalidValue), (400, "22001", .tooLong), (400, "P0001", .serverRule),
      (400, "23P01", .serverRule), (400, "44000", .serverRule), (400, "23000", .rejected),
      (400, "PGRST102", .rejected), (409, "PT409", .serverRule),
      (400, "PT400", .serverRule),
    ])
  func itemFault(status: Int, code: String, fault: MessageCode) {
    guard case .itemFault(let found, _) = outcome(status, code) else {
      expect(outcome(status, code), equals: .itemFault(fault, .value))
      return
    }
    expect(found, equals: fault)
  }

  @Test(
    "Codes that their class alone does not decide",
    arguments: [
      (409, "23505", RestOutcome.duplicateKey), (409, "23503", .missingParent),
      (403, "42501", .denied), (401, "42501", .needsToken), (403, "PT403", .denied),
      (401, "PT401", .needsToken), (401, "PGRST301", .needsToken),
      (401, "PGRST302", .needsToken), (401, "PGRST303", .needsToken), (401, "22023", .needsToken),
      (500, "57014", .statementTimeout), (416, "PGRST103", .endOfData),
      (413, "PT413", .tooLarge),
    ])
  func special(status: Int, code: String, expected: RestOutcome) {
    expect(outcome(status, code), equals: expected)
  }

  @Test("An unknown role is a fault of the token, also with status 400 (12.2)")
  func unknownRole() {
    func outcome(_ description: String) -> RestOutcome {
      RestClassification.rest(
        ResponseFacts(status: 400, code: "22023", description: description, isServerJSON: true))
    }
    expect(outcome("role \"nobody\" does not exist"), equals: .needsToken)
    expect(outcome("invalid value for parameter"), equals: .itemFault(.invalidValue, .value))
  }

  @Test(
    "An object that the server does not know yet pauses and parks nothing",
    arguments: [
      (404, "42P01"), (404, "PGRST205"), (404, "PGRST202"), (400, "PGRST204"), (400, "42703"),
      (404, "42883"), (400, "42P10"), (406, "PGRST106"), (404, "PGRST125"), (400, "PGRST200"),
    ])
  func schemaNotReady(status: Int, code: String) {
    expect(outcome(status, code), equals: .schemaNotReady)
  }

  @Test("HST-4: without a grant nobody is let in; a policy refuses this user, or these rows")
  func grants() {
    func outcome(_ status: Int, _ description: String) -> RestOutcome {
      RestClassification.rest(
        ResponseFacts(status: status, code: "42501", description: description, isServerJSON: true))
    }
    expect(outcome(403, "permission denied for table activities"), equals: .schemaNotReady)
    expect(outcome(403, "permission denied for function submit"), equals: .schemaNotReady)
    expect(outcome(401, "permission denied for table activities"), equals: .needsToken)
    let policy = "new row violates row-level security policy for table \"activities\""
    expect(outcome(403, policy), equals: .denied)
    expect(outcome(403, ""), equals: .denied)
  }

  @Test(
    "Permanent faults of the server",
    arguments: [
      (500, "21000"), (500, "42P17"), (500, "P0002"), (500, "PGRST300"), (405, "25006"),
      (405, "PGRST101"),
      (400, "PGRST122"), (406, "PGRST116"), (406, "PGRST107"), (400, "PGRST100"), (500, "0A000"),
    ])
  func serverBug(status: Int, code: String) {
    expect(outcome(status, code), equals: .serverBug)
  }

  @Test(
    "QUE-7: transient causes",
    arguments: [
      (500, "40001"), (500, "40P01"), (503, "53300"), (503, "53100"), (503, "57P01"),
      (503, "08006"), (503, "PGRST000"), (503, "PGRST001"), (503, "PGRST002"), (504, "PGRST003"),
      (429, "PT429"), (503, "PT503"), (429, "over_request_rate_limit"), (503, "something"),
      (500, "something"), (407, "proxy"),
    ])
  func transient(status: Int, code: String) {
    expect(outcome(status, code), equals: .transient)
  }

  @Test(
    "Unknown refusals",
    arguments: [
      (500, "53400"), (500, "54000"), (500, "55P03"), (500, "57000"), (500, "58030"),
      (500, "XX000"), (400, "99999"), (404, "PGRST999"),
    ])
  func unknown(status: Int, code: String) {
    expect(outcome(status, code), equals: .unknownRejection)
  }

  @Test("ATK-9: a refusal without a code of the service's is a firewall's or a portal's")
  func blocked() {
    for (status, code) in [(418, "X1"), (400, "whatever"), (403, "access_denied"), (400, nil)] {
      expect(outcome(status, code), equals: .blocked, "\(status) \(code ?? "nil")")
    }
    expect(RestClassification.rest(ResponseFacts(status: 400, code: "23514")), equals: .blocked)
  }

  @Test("QUE-20: a 400 with an empty code is a service's whose database has just stopped")
  func emptyCode() {
    expect(outcome(400, ""), equals: .transient)
    expect(RestClassification.rest(ResponseFacts(status: 400, code: "")), equals: .blocked)
  }

  @Test("Only a code in a form of the service's makes a response its own")
  func own() {
    func isOwn(_ code: String?, isServerJSON: Bool = true) -> Bool {
      RestClassification.isOwn(
        ResponseFacts(status: 503, code: code, isServerJSON: isServerJSON))
    }
    for code in ["PGRST000", "PGRST301", "PT429", "53300", "XX000"] {
      expect(isOwn(code), "\(code)")
    }
    for code in [nil, "", "PGRST", "PGRST1", "access_denied", "block", "123456", "5330"] {
      expect(!isOwn(code), "\(code ?? "nil")")
    }
    expect(!isOwn("53300", isServerJSON: false))
    expect(
      AuthClassification.isOwn(
        ResponseFacts(status: 429, code: "over_request_rate_limit", isServerJSON: true)))
    expect(
      !AuthClassification.isOwn(
        ResponseFacts(status: 503, code: "access_denied", isServerJSON: true)))
    expect(!AuthClassification.isOwn(ResponseFacts(status: 503)))
  }

  @Test("Without a JSON body, the status decides")
  func byStatus() {
    let expected: [(Int, RestOutcome)] = [
      (0, .transient), (302, .transient), (400, .blocked), (401, .needsToken), (403, .blocked),
      (404, .blocked), (407, .transient), (408, .transient), (413, .tooLarge), (416, .endOfData),
      (425, .transient), (429, .transient), (451, .blocked), (499, .blocked), (500, .transient),
      (502, .transient), (503, .transient),
      (504, .transient), (522, .transient),
    ]
    for (status, outcome) in expected {
      expect(RestClassification.rest(ResponseFacts(status: status)), equals: outcome, "\(status)")
    }
  }
}
