import Base
import Policy
import Supabase

/// A request that the server refuses for its schema: a table, column or function is missing, or nobody
/// is granted its use.
final class Problem {
  let subject: Problems.Subject
  let code: String
  /// As far as the server or the configuration names them.
  let table: String?
  let column: String?
  /// When it was first seen, by the device's clock.
  let sinceMS: Int64

  init(_ subject: Problems.Subject, _ response: HTTPResponse, _ code: String, _ now: Instant) {
    let error = ServerError.read(response.body)
    self.subject = subject
    self.code = code
    table = ServerError.table(code, error.message) ?? subject.table
    column = code == "42703" || code == "PGRST204" ? error.column : nil
    sinceMS = now.wallMS
  }

  func isSame(as other: Problem) -> Bool {
    code == other.code && table == other.table && column == other.column
  }

  var json: JSON {
    [
      "what": .string(subject.what.string), "kind": JSON(subject.kind),
      "purpose": .string(subject.purpose.rawValue), "table": JSON(table),
      "function": JSON(subject.function), "column": JSON(column), "code": .string(code),
      "since_ms": .int(sinceMS), "text": .string(text.string),
    ]
  }

  /// What to do, for developers.
  private var text: StaticCString {
    switch code {
    case "42P01", "PGRST205":
      """
      The server has no such table. Create it, name the right one in the configuration, or reload \
      the schema cache of the API.
      """
    case "42703", "PGRST204":
      """
      The table has no such column. Add it, name the right one in the configuration, or reload the \
      schema cache of the API.
      """
    case "42883", "PGRST202", "PGRST203":
      """
      The server has no such function with these parameters. Create it, name the right one in the \
      configuration, or reload the schema cache of the API.
      """
    case "PGRST200", "PGRST201":
      "The server finds no single foreign key between the tables."
    case "42501": "The signed-in user has no grant, or no policy lets these rows through."
    case "42P17": "A policy reads the table that it guards. Read it in a function instead."
    case "42P10": "The table has no primary key or unique constraint on \"id\" alone."
    case "3F000", "PGRST106": "The API does not expose the schema."
    default: "The server refuses the request for its schema or configuration; see its log."
    }
  }
}

/// The requests that the server refuses for its schema, until the same request is answered. Each purpose
/// and kind has its own: a missing table says nothing about another one.
final class Problems {
  /// What a request asks for.
  final class Subject {
    let what: StaticCString
    let purpose: Purpose
    let kind: String?
    let table: String?
    let function: String?
    /// A read-back is another request than the upload that it follows.
    let isReadBack: Bool

    init(
      _ what: StaticCString, _ purpose: Purpose, kind: String? = nil, table: String? = nil,
      function: String? = nil, isReadBack: Bool = false
    ) {
      self.what = what
      self.purpose = purpose
      self.kind = kind
      self.table = table
      self.function = function
      self.isReadBack = isReadBack
    }

    func isSame(as other: Subject) -> Bool {
      purpose == other.purpose && kind == other.kind && isReadBack == other.isReadBack
    }
  }

  /// A configuration may have many kinds.
  private static var most: Int { 64 }

  private let core: Core
  private var all: [Problem] = []

  init(_ core: Core) { self.core = core }

  /// The session ended: another user may be allowed more.
  func forgetAll() { all = [] }

  func concern(_ purpose: Purpose) -> Bool { all.contains { $0.subject.purpose == purpose } }

  func concern(kind: String) -> Bool { all.contains { $0.subject.kind == kind } }

  var json: JSON { .array(all.map { $0.json }) }

  /// Note what the response says about the schema.
  func note(_ request: InFlightRequest, _ response: HTTPResponse, _ now: Instant) {
    guard let subject = subject(of: request) else { return }
    let facts = response.facts
    let outcome = RestClassification.rest(facts)
    let index = all.firstIndex { $0.subject.isSame(as: subject) }
    if outcome.isOfWorkingSchema {
      if let index { all.remove(at: index) }
      return
    }
    guard request.isRefused(outcome, response), let code = facts.code else { return }
    let problem = Problem(subject, response, code, now)
    if let index {
      if all[index].isSame(as: problem) { return }
      all[index] = problem
    } else if all.count < Problems.most {
      all.append(problem)
    } else {
      return
    }
    Log.line(
      .warning, "a problem with the server's schema: \(subject.purpose.rawValue), \(code)")
  }

  /// nil: the request does not depend on the configured names.
  private func subject(of request: InFlightRequest) -> Subject? {
    let (backend, purpose) = (core.configuration.backend, request.purpose)
    switch request.content {
    case .membershipCheck: return Subject("memberships", purpose, table: backend.membershipsTable)
    case .contacts, .live: return Subject("contacts", purpose, table: backend.contactsTable)
    case .summary: return Subject("summary", purpose, function: backend.summaryFunction)
    case .upload(let batch):
      let kind = batch.kind
      return kind.upload == .rpc
        ? Subject("queue", purpose, kind: kind.name, function: kind.function)
        : Subject("queue", purpose, kind: kind.name, table: kind.table)
    case .readBack(let batch):
      return Subject(
        "queue", purpose, kind: batch.kind.name, table: batch.kind.table, isReadBack: true)
    case .refresh, .validate, .signIn, .revoke: return nil
    }
  }
}

extension RestOutcome {
  /// The server did what it was asked, or refused rows for what they are.
  fileprivate var isOfWorkingSchema: Bool {
    switch self {
    case .answered, .endOfData, .itemFault, .duplicateKey, .missingParent: true
    default: false
    }
  }
}

extension InFlightRequest {
  /// Whether the response refuses the request for the schema, and not for the rows or the user.
  fileprivate func isRefused(_ outcome: RestOutcome, _ response: HTTPResponse) -> Bool {
    switch outcome {
    case .schemaNotReady, .serverBug, .denied: break
    default: return false
    }
    switch content {
    case .upload(let batch):
      // Refused for the first time, the membership may have ended: it is checked first.
      if outcome == .denied { return batch.items.contains { $0.denials > 0 } }
      // The configuration does not list the column either: the items are parked.
      return !batch.lacksColumn(response)
    // The user may not read every column; the next read-back asks for the ids alone.
    case .readBack(let batch): return !batch.comparesRows
    default: return true
    }
  }
}
