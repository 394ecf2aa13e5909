/// Classifies the error codes of PostgreSQL (SQLSTATE).
///
/// Source: https://www.postgresql.org/docs/15/errcodes-appendix.html; the statuses are PostgREST's.
/// Several codes contradict their status: 21000 comes with 500 and is permanent; 42501 comes with
/// 401 without a token and with 403 with one; 57014 comes with 500 and asks for smaller batches.
/// What a refused row may be blamed for, its `Ground`, follows `BlamePolicy`.
enum SQLState {
  /// The outcome; nil for an unknown code.
  static func outcome(_ code: String, _ facts: ResponseFacts) -> RestOutcome? {
    guard code.utf8.count == 5 else { return nil }
    return exact(code, facts) ?? byClass(code)
  }

  private static func exact(_ code: String, _ facts: ResponseFacts) -> RestOutcome? {
    switch code {
    case "23505": return .duplicateKey
    // From PostgreSQL 18 on a foreign key that restricts deletions has a code of its own.
    case "23503", "23001": return .missingParent
    case "23502": return .itemFault(.missingValue, .column)
    // The server's own fault has the code of a check, too: nobody has made the partition.
    case "23514" where facts.describes("no partition of relation"):
      return .itemFault(.serverRule, .other)
    case "23514", "P0001": return .itemFault(.serverRule, .value)
    case "23P01": return .itemFault(.serverRule, .column)
    // A view's check option is a policy in another form.
    case "44000": return .itemFault(.serverRule, .other)
    case "22001": return .itemFault(.tooLong, .value)
    case "22023" where isAboutRole(facts): return .needsToken
    // Without a grant on the table or function nobody with this role is let in, whatever the row.
    case "42501" where facts.status == 401: return .needsToken
    case "42501": return facts.describes("permission denied for") ? .schemaNotReady : .denied
    // Unknown table, column, function, schema; no such unique key; a generated column.
    case "42P01", "42703", "42883", "3F000", "42P10", "428C9": return .schemaNotReady
    case "57014": return .statementTimeout
    case "57P01", "57P02", "57P03", "57P05": return .transient
    case "53400": return .unknownRejection
    default: return nil
    }
  }

  private static func byClass(_ code: String) -> RestOutcome? {
    switch code.prefix(2) {
    case "22": return .itemFault(.invalidValue, .value)
    case "23": return .itemFault(.rejected, .other)
    // Connection, deadlock and serialisation, resources.
    case "08", "40", "53": return .transient
    // A limit, a lock, an operator, the system, a defect of the server: may pass.
    case "54", "55", "57", "58", "XX": return .unknownRejection
    // Policies, functions and triggers that are defective, such as a subquery that finds two rows (21000); a
    // read-only transaction.
    case "09", "0A", "21", "25", "26", "2F", "38", "39", "42", "F0", "HV", "P0": return .serverBug
    default: return nil
    }
  }

  /// Whether the token names a role that the database does not know. PostgREST answers 401; up to
  /// version 12, 400.
  private static func isAboutRole(_ facts: ResponseFacts) -> Bool {
    facts.status == 401
      || facts.describes("role \"") && facts.describes("does not exist")
  }
}
