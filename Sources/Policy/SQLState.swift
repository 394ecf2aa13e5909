/// What PostgreSQL's error codes mean for what was sent.
///
/// Source: https://www.postgresql.org/docs/15/errcodes-appendix.html; the statuses are PostgREST's.
/// Several say something else than their status does: 21000 is 500 and permanent, 42501 is 401
/// without a token and 403 with one, 57014 is 500 and asks for smaller batches.
enum SQLState {
  /// The outcome; nil for a code that is not known here.
  static func outcome(_ code: String, _ facts: ResponseFacts) -> RestOutcome? {
    guard code.utf8.count == 5 else { return nil }
    return exact(code, facts) ?? byClass(code)
  }

  private static func exact(_ code: String, _ facts: ResponseFacts) -> RestOutcome? {
    func isOneOf(_ codes: StaticString) -> Bool { ASCII.lists(codes, Array(code.utf8)) }
    if isOneOf("23505") { return .duplicateKey }
    if isOneOf("23503") { return .missingParent }
    if isOneOf("23502") { return .itemFault(.missingValue) }
    if isOneOf("23514 23P01 44000 P0001") { return .itemFault(.serverRule) }
    if isOneOf("22001") { return .itemFault(.tooLong) }
    // The same row twice in one statement: apart, each is fine.
    if isOneOf("21000") { return .itemFault(.duplicate) }
    if isOneOf("22023"), isAboutRole(facts) { return .needsToken }
    if isOneOf("42501") { return facts.status == 401 ? .needsToken : .denied }
    // Unknown table, column, function, schema; no such unique key; a generated column.
    if isOneOf("42P01 42703 42883 3F000 42P10 428C9") { return .schemaNotReady }
    if isOneOf("57014") { return .statementTimeout }
    if isOneOf("57P01 57P02 57P03 57P05") { return .transient }
    if isOneOf("53400") { return .unknownRejection }
    return nil
  }

  private static func byClass(_ code: String) -> RestOutcome? {
    func isOneOf(_ classes: StaticString) -> Bool {
      ASCII.lists(classes, Array(Array(code.utf8).prefix(2)))
    }
    if isOneOf("22") { return .itemFault(.invalidValue) }
    if isOneOf("21 23") { return .itemFault(.rejected) }
    // Connection, deadlock and serialisation, resources.
    if isOneOf("08 40 53") { return .transient }
    // A limit, a lock, an operator, the system, a defect: may pass, and is counted.
    if isOneOf("54 55 57 58 XX") { return .unknownRejection }
    // Policies, functions and triggers that cannot work as they are; a read-only transaction.
    if isOneOf("09 0A 25 26 2F 38 39 42 F0 HV P0") { return .serverBug }
    return nil
  }

  /// A token that names a role the database does not know: 401, but 400 up to version 12.
  private static func isAboutRole(_ facts: ResponseFacts) -> Bool {
    facts.status == 401
      || facts.describes("role \"") && facts.describes("does not exist")
  }
}
