import Base

/// The meaning of a response of the data service for the request.
public enum RestOutcome: Equatable, Sendable {
  /// Read the body. For an upload, only the ids in it prove what is stored: the status is 201 also
  /// when rows were skipped. Every request asks for a body, because a response without one cannot
  /// be told from a captive portal's.
  case answered
  /// The requested page is beyond the end.
  case endOfData
  /// A row is refused: sending it again unchanged would fail again. `BlamePolicy` says whether one of
  /// the items is at fault.
  case itemFault(MessageCode, BlamePolicy.Ground)
  /// A unique key exists already: read the ids back. Items that are stored are done; the others are
  /// refused for a column.
  case duplicateKey
  /// The parent row of an item does not exist: wait for the parent if it is queued, else the item is refused
  /// for a column.
  case missingParent
  /// A row-level policy refused a signed-in user: check whether the membership has ended.
  case denied
  /// The access token is missing or invalid: refresh it. This is no failed attempt of the items.
  case needsToken
  /// The request is too large: send fewer items. A single item is itself too large.
  case tooLarge
  /// The statement took too long: send fewer items. Send a single item again after a pause.
  case statementTimeout
  /// The server does not know the table, column or function (yet), or lets nobody use it: pause without
  /// parking items.
  case schemaNotReady
  /// A defect of the server's schema or configuration: pause without parking items.
  case serverBug
  /// Send again after a pause.
  case transient
  /// A request refused for an unknown reason, which is never taken for an item's fault (QUE-20):
  /// pause without parking items.
  case unknownRejection
  /// Something else than the service refused the request: a firewall, for what is in it, or a captive
  /// portal, which refuses everything. Ask the service something else to tell which.
  case blocked
}

extension RestOutcome {
  /// What the refusal of a row is about; nil: no row was refused.
  public var ground: BlamePolicy.Ground? {
    switch self {
    case .itemFault(_, let ground): ground
    case .duplicateKey, .missingParent: .column
    case .denied: .other
    default: nil
    }
  }
}

/// Classifies the responses of the data service.
///
/// The rules are applied in this order:
/// 1. A success needs a JSON body or status 204; otherwise a captive portal may have sent it.
/// 2. Without an error code in a form of the service's (a gateway's response), the status decides.
/// 3. A code of PostgREST (`PGRST…`) decides; a code `PT…`, which SQL raises to set the status,
///    leaves the decision to that status.
/// 4. Any other code is PostgreSQL's SQLSTATE: first the exact code decides, then its class.
/// 5. An unknown code is classified by the status. A request with one never parks an item.
///
/// Whether a refused row blames an item: `BlamePolicy`.
///
/// Sources: PostgREST `docs/references/errors.rst` and `src/library/PostgREST/Error.hs`; measured
/// on 12.2.12, 13.0.8 and 14.17.
public enum RestClassification {
  public static func rest(_ facts: ResponseFacts) -> RestOutcome {
    if facts.isSuccess {
      // A portal's page comes with 200. 204 has no body that could be checked.
      return facts.isServerJSON || facts.status == 204 ? .answered : .transient
    }
    guard let code = facts.knownCode, isOwn(facts) else { return byStatus(facts) }
    if ASCII.starts(code, "PGRST") { return service(code) ?? unknown(facts.status) }
    if ASCII.starts(code, "PT") { return raised(facts.status) }
    return SQLState.outcome(code, facts) ?? unknown(facts.status)
  }

  /// Whether the response is the data service's own, and not a gateway's or a captive portal's: its
  /// errors have a code of PostgREST (`PGRST301`), a raised status (`PT429`) or an SQLSTATE.
  public static func isOwn(_ facts: ResponseFacts) -> Bool {
    guard let code = facts.knownCode else { return false }
    if ASCII.starts(code, "PGRST") { return code.utf8.count == 8 }
    return code.utf8.count == 5
      && code.utf8.allSatisfy {
        ASCII.isDigit($0) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
      }
  }

  /// A response without a code of the service's: from a gateway, a firewall or a captive portal, or
  /// 400 with an empty code from a service whose database has just stopped.
  private static func byStatus(_ facts: ResponseFacts) -> RestOutcome {
    switch facts.status {
    case 401: .needsToken
    case 413: .tooLarge
    case 416: .endOfData
    // The proxy wants a password, a time-out, too early, too many requests.
    case 407, 408, 425, 429: .transient
    case 400..<500: facts.hasEmptyCode ? .transient : .blocked
    default: .transient
    }
  }

  private static func unknown(_ status: Int) -> RestOutcome {
    switch status {
    case 401: .needsToken
    case 413: .tooLarge
    case 408, 425, 429, 503, 504: .transient
    default: .unknownRejection
    }
  }

  /// SQL on the server that raises the error `PTxyz` sets the status xyz, which decides.
  private static func raised(_ status: Int) -> RestOutcome {
    switch status {
    case 401: .needsToken
    case 403: .denied
    case 413: .tooLarge
    case 408, 425, 429: .transient
    case 400..<500: .itemFault(.serverRule, .value)
    case 500...: .transient
    default: .unknownRejection
    }
  }

  /// The codes of PostgREST, by the number after "PGRST"; nil for unknown ones.
  private static func service(_ code: String) -> RestOutcome? {
    var number = 0
    for byte in code.utf8.dropFirst(5) {
      guard let digit = ASCII.digit(byte), number < 100 else { return nil }
      number = 10 * number + digit
    }
    guard code.utf8.count == 8 else { return nil }
    switch number {
    case 0...3: return .transient
    // The body does not parse. Payloads are checked when they are queued, so hardly an item causes that.
    case 102: return .itemFault(.rejected, .other)
    case 103: return .endOfData
    case 106, 125, 200...205: return .schemaNotReady
    case 301...303: return .needsToken
    case 100, 101, 105, 107, 108, 116...118, 120...124, 126...128, 300: return .serverBug
    default: return nil
    }
  }
}
