/// What is wrong with one item, so that sending it again as it is will not help.
public enum ItemFault: String, CaseIterable, Sendable {
  case rejected
  case invalidValue = "invalid_value"
  case missingValue = "missing_value"
  case tooLong = "too_long"
  case duplicate
  case serverRule = "server_rule"
}

/// What an answer of the data service means for what was sent.
public enum RestOutcome: Equatable, Sendable {
  /// Read the body (every request asks for one: without it, 201 looks like a portal's). For an
  /// upload the ids in it are the proof, not the status: 201 is also the answer to rows that were
  /// not stored.
  case answered
  /// A page was asked for beyond the end.
  case endOfData
  /// One of the items is at fault: bisect; park the one that is alone.
  case itemFault(ItemFault)
  /// A unique key exists: ask for the ids; stored before counts as stored, else park.
  case duplicateKey
  /// What the item belongs to does not exist: wait for it if it is queued, else park.
  case missingParent
  /// A policy of the server's said no to a signed-in user: has the membership ended?
  case denied
  /// The access token is missing or no longer good: refresh; the items are not charged.
  case needsToken
  /// Send less at once; alone, the item is too large.
  case tooLarge
  /// It took too long, or another transaction was in the way: send less at once; alone, try again
  /// by back-off.
  case statementTimeout
  /// The server does not know the table, column or function (yet): pause, park nothing.
  case schemaNotReady
  /// A fault of the server's making that time does not mend: pause, park nothing, tell developers.
  case serverBug
  /// Try again by back-off.
  case transient
  /// Refused for a reason that is on no list: try again by back-off; after several in a row it
  /// counts as `serverBug`. Never the item's fault (QUE-20).
  case unknownRejection
}

/// What the data service's answers mean. Sources: PostgREST `docs/references/errors.rst` and
/// `src/library/PostgREST/Error.hs`; measured on 12.2.12, 13.0.8 and 14.17.
///
/// The code decides, the status only where the body is not the service's JSON.
public enum RestClassification {
  public static func rest(_ facts: ResponseFacts) -> RestOutcome {
    if facts.isSuccess {
      // A portal's page comes with 200; only 204 has no body to tell it by.
      return facts.isServerJSON || facts.status == 204 ? .answered : .transient
    }
    guard let code = facts.knownCode else { return byStatus(facts.status) }
    if ASCII.starts(code, "PGRST") { return service(code) ?? unknown(facts.status) }
    if ASCII.starts(code, "PT") { return raised(facts.status) }
    return SQLState.outcome(code, facts) ?? unknown(facts.status)
  }

  /// No code: a gateway's answer, or 400 with an empty code from a service whose database has just
  /// stopped.
  private static func byStatus(_ status: Int) -> RestOutcome {
    switch status {
    case 401: .needsToken
    case 413: .tooLarge
    case 416: .endOfData
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

  /// SQL of the organisation's own that raises `PTxyz` names the status it means.
  private static func raised(_ status: Int) -> RestOutcome {
    switch status {
    case 401: .needsToken
    case 403: .denied
    case 413: .tooLarge
    case 408, 425, 429: .transient
    case 400..<500: .itemFault(.serverRule)
    case 500...: .transient
    default: .unknownRejection
    }
  }

  /// The service's own codes, by what stands behind "PGRST"; nil for one that is not known here.
  private static func service(_ code: String) -> RestOutcome? {
    var number = 0
    for byte in code.utf8.dropFirst(5) {
      guard let digit = ASCII.digit(byte), number < 100 else { return nil }
      number = 10 * number + digit
    }
    guard code.utf8.count == 8 else { return nil }
    switch number {
    case 0...3: return .transient
    // A body that does not parse can be one item's doing; what is sent was checked at the door, so
    // this is rare, and bisecting keeps it from blocking the others.
    case 102: return .itemFault(.rejected)
    case 103: return .endOfData
    case 106, 125, 200...205: return .schemaNotReady
    case 301...303: return .needsToken
    case 100, 101, 105, 107, 108, 116...118, 120...124, 126...128, 300: return .serverBug
    default: return nil
    }
  }
}
