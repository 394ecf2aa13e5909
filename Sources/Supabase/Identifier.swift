import Base

/// A name of a table, column or function. It is put into URLs, so it must match
/// `[a-z_][a-z0-9_]{0,62}`.
enum Identifier {
  static func isValid(_ text: some Collection<UInt8>) -> Bool {
    guard let first = text.first, text.count <= 63, !ASCII.isDigit(first) else { return false }
    return text.allSatisfy { isPart($0) }
  }

  /// Whether a name may hold this character; digits not as the first.
  static func isPart(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") || byte == UInt8(ascii: "_")
      || ASCII.isDigit(byte)
  }

  /// The member `name`, or the default when it is absent.
  static func read(
    _ name: StaticCString, in fields: Fields?, default standard: String
  ) throws(Failure) -> String {
    guard let fields, let text = try fields.string(ifPresent: name) else { return standard }
    guard isValid(text.utf8) else { throw refusal(fields.pointer(name)) }
    return text
  }

  /// A list of names without duplicates.
  static func readAll(_ name: StaticCString, in fields: Fields) throws(Failure) -> [String]? {
    guard let list = try fields.strings(ifPresent: name) else { return nil }
    for (index, text) in list.enumerated() {
      let field = "\(fields.pointer(name))/\(index)"
      guard isValid(text.utf8) else { throw refusal(field) }
      guard !list[..<index].contains(text) else {
        throw Failure(.requestInvalidValue, "the same name twice", field: field)
      }
    }
    return list
  }

  static func refusal(_ field: String) -> Failure {
    Failure(
      .requestInvalidValue,
      "a name of lower-case letters, digits and _ is expected, at most 63 characters",
      field: field)
  }
}
