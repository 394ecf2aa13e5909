/// What PostgreSQL's error codes mean for what was sent.
///
/// Source: https://www.postgresql.org/docs/15/errcodes-appendix.html; the statuses are PostgREST's.
/// Several say something else than their status does: 21000 is 500 and permanent, 42501 is 401
/// without a token and 403 with one, 57014 is 500 and asks for smaller batches.
enum SQLState {
  /// The verdict; nil for a code that is not known here.
  static func verdict(_ code: String, _ answer: Answer) -> RestVerdict? {
    guard code.utf8.count == 5 else { return nil }
    return exact(code, answer) ?? byClass(code)
  }

  private static func exact(_ code: String, _ answer: Answer) -> RestVerdict? {
    switch code {
    case "23505": .duplicateKey
    case "23503": .missingParent
    case "23502": .itemFault(.missingValue)
    case "23514", "23P01", "44000", "P0001": .itemFault(.serverRule)
    case "22001": .itemFault(.tooLong)
    // The same row twice in one statement: apart, each is fine.
    case "21000": .itemFault(.duplicate)
    case "22023" where isAboutRole(answer): .needsToken
    case "42501": answer.status == 401 ? .needsToken : .denied
    // Unknown table, column, function, schema; no such unique key; a generated column.
    case "42P01", "42703", "42883", "3F000", "42P10", "428C9": .schemaNotReady
    case "57014": .statementTimeout
    case "57P01", "57P02", "57P03", "57P05": .transient
    case "53400": .unknownRejection
    default: nil
    }
  }

  private static func byClass(_ code: String) -> RestVerdict? {
    switch code.prefix(2) {
    case "22": .itemFault(.invalidValue)
    case "21", "23": .itemFault(.rejected)
    // Connection, deadlock and serialisation, resources.
    case "08", "40", "53": .transient
    // A limit, a lock, an operator, the system, a defect: may pass, and is counted.
    case "54", "55", "57", "58", "XX": .unknownRejection
    // Policies, functions and triggers that cannot work as they are; a read-only transaction.
    case "09", "0A", "25", "26", "2F", "38", "39", "42", "F0", "HV", "P0": .serverBug
    default: nil
    }
  }

  /// A token that names a role the database does not know: 401, but 400 up to version 12.
  private static func isAboutRole(_ answer: Answer) -> Bool {
    answer.status == 401
      || answer.describes("role \"") && answer.describes("does not exist")
  }
}
