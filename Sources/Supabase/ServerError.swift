public import Base

/// The body of an error response, in any of the forms that the services use.
///
/// The texts are for developers only: they may contain host names, database users and user data.
public struct ServerError: Equatable, Sendable {
  /// `code`, or `error_code` in the auth service's older form. A number is not a code.
  public var code: String?
  public var message: String?
  public var details: String?
  /// The column that the error is about, if the texts tell it.
  public var column: String?

  public init(
    code: String? = nil, message: String? = nil, details: String? = nil, column: String? = nil
  ) {
    self.code = code
    self.message = message
    self.details = details
    self.column = column
  }

  public static func read(_ body: JSON?) -> ServerError {
    guard let body else { return ServerError() }
    var error = ServerError()
    error.code = body.string("code") ?? body.string("error_code")
    error.message =
      body.string("msg") ?? body.string("message") ?? body.string("error_description")
    error.details = body.string("details")
    error.column = column(error.code, error.message, error.details)
    return error
  }

  /// Finds the column in PostgreSQL's English message texts, where possible.
  static func column(_ code: String?, _ message: String?, _ details: String?) -> String? {
    let message = Array((message ?? "").utf8)
    switch code {
    case "23502": return name(after: "column \"", in: message)
    case "42703":
      // column "x" of relation "t" does not exist; column t.x does not exist
      return name(after: "column \"", in: message) ?? name(after: ".", in: message)
    case "23514": return constrained(message, "relation \"", "_check")
    case "23503":
      // The details name no column to a user who may not read the other table.
      return name(after: "Key (", in: Array((details ?? "").utf8))
        ?? constrained(message, "table \"", "_fkey")
    case "23505": return name(after: "Key (", in: Array((details ?? "").utf8))
    case "PGRST204": return name(after: "Could not find the '", in: message)
    default: return nil
    }
  }

  /// Whether the texts name this column: alone, in a key of several columns, or in the name that PostgreSQL
  /// gives to the constraint of one (`<table>_<column>_<column>_fkey`). The server shows the key of a
  /// constraint only to users who may read it without a policy, but always its name.
  public func names(_ wanted: String, of table: String) -> Bool {
    if column == wanted || ServerError.key(in: details).contains(wanted) { return true }
    let message = Array((message ?? "").utf8)
    guard column == nil, let constraint = ServerError.name(after: "constraint \"", in: message)
    else {
      return false
    }
    var rest = Array(constraint.utf8)
    let prefix = Array(table.utf8)
    if rest.starts(with: prefix) { rest.removeFirst(prefix.count) }
    return ServerError.contains(
      Array("_".utf8) + rest + Array("_".utf8), Array("_\(wanted)_".utf8))
  }

  /// Whether the message quotes one of these values.
  public func quotes(_ values: [String]) -> Bool {
    let message = Array((message ?? "").utf8)
    return values.contains { ServerError.contains(message, Array("\"\($0)\"".utf8)) }
  }

  private static func contains(_ text: [UInt8], _ words: [UInt8]) -> Bool {
    guard text.count >= words.count else { return false }
    return (0...(text.count - words.count)).contains { text[$0...].starts(with: words) }
  }

  /// The columns of a key: `Key (a, b)=(…)`.
  private static func key(in details: String?) -> [String] {
    let details = Array((details ?? "").utf8)
    let words = Array("Key (".utf8)
    guard details.starts(with: words) else { return [] }
    let list = details[words.count...].prefix { $0 != UInt8(ascii: ")") }
    return list.split(separator: UInt8(ascii: ",")).map { part in
      String(decoding: part.drop { $0 == UInt8(ascii: " ") }, as: UTF8.self)
    }
  }

  /// Finds the table or view in the English message texts, where possible. A name without its schema.
  public static func table(_ code: String?, _ message: String?) -> String? {
    let message = Array((message ?? "").utf8)
    switch code {
    case "42501":
      // permission denied for table t; … violates row-level security policy for table "t"
      return name(after: "for table \"", in: message) ?? name(after: "for table ", in: message)
        ?? name(after: "for view ", in: message)
    case "42P01", "42P17":
      return name(after: "relation \"public.", in: message)
        ?? name(after: "relation \"", in: message)
    case "PGRST200": return name(after: "' and '", in: message)
    case "PGRST205": return name(after: "the table 'public.", in: message)
    default: return nil
    }
  }

  /// The column of a constraint. PostgreSQL names the constraints of a column
  /// `<table>_<column>_check` and `_fkey`, with a number at the end from the second on.
  private static func constrained(
    _ message: [UInt8], _ beforeTable: StaticString, _ suffix: String
  ) -> String? {
    guard let table = name(after: beforeTable, in: message),
      let constraint = name(after: "constraint \"", in: message)
    else { return nil }
    let rest = Array(constraint.utf8)
    let prefix = Array(table.utf8) + [UInt8(ascii: "_")]
    guard Array(rest.prefix(prefix.count)) == prefix else { return nil }
    var column = rest[prefix.count...]
    while let last = column.last, ASCII.isDigit(last) { column.removeLast() }
    let count = suffix.utf8.count
    guard column.count > count, Array(column.suffix(count)) == Array(suffix.utf8) else {
      return nil
    }
    return identifier(column.dropLast(count))
  }

  /// The identifier that follows `words` in the text.
  private static func name(after words: StaticString, in text: [UInt8]) -> String? {
    let words = words.withUTF8Buffer { Array($0) }
    guard text.count > words.count else { return nil }
    for start in 0..<(text.count - words.count)
    where Array(text[start..<(start + words.count)]) == words {
      let rest = text[(start + words.count)...]
      let found = rest.prefix { Identifier.isPart($0) }
      // The beginning of another word, such as an address, is no name.
      switch rest.dropFirst(found.count).first {
      case nil, UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: ")"),
        UInt8(ascii: ","), UInt8(ascii: "."):
        return identifier(found)
      default: return nil
      }
    }
    return nil
  }

  private static func identifier(_ bytes: ArraySlice<UInt8>) -> String? {
    Identifier.isValid(bytes) ? String(decoding: bytes, as: UTF8.self) : nil
  }
}
