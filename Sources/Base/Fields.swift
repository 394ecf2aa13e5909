/// Reads the members of a request strictly: every failure names the field that is wrong.
public struct Fields {
  public let object: JSON
  /// The JSON Pointer of `object`.
  public let path: String

  /// `known` lists all fields that the object may have; any other is an error.
  @inline(never)
  public init(_ value: JSON, at path: String = "", known: [StaticCString]) throws(Failure) {
    guard value.kind == .object else {
      var message = "an object is expected"
      if !known.isEmpty { message += ", with " + Suggestion.list(Fields.texts(known)) }
      throw Failure(
        path.isEmpty ? .requestNotAnObject : .requestWrongType, message, field: path)
    }
    object = value
    self.path = path
    guard let unknown = value.firstMember(notAmong: known) else { return }
    throw Fields.unknown(
      unknown, Suggestion.nearest(to: unknown, among: Fields.texts(known)), at: path)
  }

  @inline(never)
  private static func texts(_ names: [StaticCString]) -> [String] { names.map { $0.string } }

  /// The failure of a field that the object at `path` must not have.
  @inline(never)
  public static func unknown(_ name: String, _ near: String?, at path: String) -> Failure {
    var message = "unknown field"
    if let near { message += "; did you mean \"\(near)\"?" }
    return Failure(.requestUnknownField, message, field: path + "/" + JSONPointer.escape(name))
  }

  /// The pointer of a member whose name needs no escape.
  @inline(never)
  public func pointer(_ name: StaticCString) -> String { path + "/" + name.string }

  /// A member; nil when it is absent or null.
  @inline(never)
  public func optional(_ name: StaticCString) -> JSON? {
    guard let value = object[name], !value.isNull else { return nil }
    return value
  }

  /// Whether a member is present and null.
  public func isNull(_ name: StaticCString) -> Bool { object[name]?.isNull ?? false }

  @inline(never)
  public func required(_ name: StaticCString) throws(Failure) -> JSON {
    guard let value = optional(name) else {
      throw Failure(.requestMissingField, "this field is required", field: pointer(name))
    }
    return value
  }

  @inline(never)
  public func wrongType(_ name: StaticCString, _ expected: String) -> Failure {
    Failure(.requestWrongType, "\(expected) is expected", field: pointer(name))
  }

  @_disfavoredOverload
  @inline(never)
  public func invalid(_ name: StaticCString, _ message: String) -> Failure {
    Failure(.requestInvalidValue, message, field: pointer(name))
  }

  @inline(never)
  public func invalid(_ name: StaticCString, _ message: StaticCString) -> Failure {
    Failure(.requestInvalidValue, message, field: pointer(name))
  }

  /// A string of 1 to `maximum` bytes.
  @inline(never)
  public func string(_ name: StaticCString, maximum: Int = 4096) throws(Failure) -> String {
    let value = try required(name)
    guard let text = value.string else { throw wrongType(name, "a string") }
    guard !text.isEmpty, text.utf8.count <= maximum else {
      throw invalid(name, "1 to \(maximum) bytes are expected")
    }
    return text
  }

  /// A string of 1 to `maximum` bytes that must not become a Swift String, because it is a secret.
  @inline(never)
  public func text(_ name: StaticCString, maximum: Int) throws(Failure) -> JSON {
    let value = try required(name)
    guard let count = value.withUTF8({ $0.count }) else { throw wrongType(name, "a string") }
    guard count > 0, count <= maximum else {
      throw invalid(name, "1 to \(maximum) bytes are expected")
    }
    return value
  }

  @inline(never)
  public func string(ifPresent name: StaticCString, maximum: Int = 4096) throws(Failure) -> String?
  {
    optional(name) == nil ? nil : try string(name, maximum: maximum)
  }

  @inline(never)
  public func integer(
    _ name: StaticCString, in range: ClosedRange<Int64> = Fields.safe
  ) throws(Failure) -> Int64 {
    let value = try required(name)
    guard let number = value.wholeNumber else { throw wrongType(name, "an integer") }
    guard range.contains(number) else {
      throw invalid(name, "\(range.lowerBound) to \(range.upperBound) is expected")
    }
    return number
  }

  @inline(never)
  public func integer(
    ifPresent name: StaticCString, in range: ClosedRange<Int64> = Fields.safe
  ) throws(Failure) -> Int64? {
    optional(name) == nil ? nil : try integer(name, in: range)
  }

  @inline(never)
  public func bool(_ name: StaticCString) throws(Failure) -> Bool {
    let value = try required(name)
    guard let flag = value.bool else { throw wrongType(name, "true or false") }
    return flag
  }

  @inline(never)
  public func bool(ifPresent name: StaticCString) throws(Failure) -> Bool? {
    optional(name) == nil ? nil : try bool(name)
  }

  @inline(never)
  public func uuid(_ name: StaticCString) throws(Failure) -> UUID {
    let text = try string(name)
    guard let id = UUID(text) else { throw invalid(name, "a UUID is expected") }
    return id
  }

  @inline(never)
  public func uuid(ifPresent name: StaticCString) throws(Failure) -> UUID? {
    optional(name) == nil ? nil : try uuid(name)
  }

  @inline(never)
  public func array(ifPresent name: StaticCString) throws(Failure) -> [JSON]? {
    guard let value = optional(name) else { return nil }
    guard value.kind == .array else { throw wrongType(name, "an array") }
    return value.elements
  }

  @inline(never)
  public func strings(ifPresent name: StaticCString) throws(Failure) -> [String]? {
    guard let elements = try array(ifPresent: name) else { return nil }
    var result: [String] = []
    for (index, element) in elements.enumerated() {
      guard let text = element.string, !text.isEmpty else {
        throw Failure(
          .requestWrongType, "a string is expected", field: "\(pointer(name))/\(index)")
      }
      result.append(text)
    }
    return result
  }

  /// One of the raw values of `Choice`.
  public func choice<Choice: RawRepresentable & CaseIterable>(
    _ name: StaticCString, _ type: Choice.Type
  ) throws(Failure) -> Choice where Choice.RawValue == String {
    let text = optional(name)?.string
    if let text, let choice = Choice(listed: text) { return choice }
    throw refusal(name, text, isNoneOf: Choice.allCases.map { $0.rawValue })
  }

  /// The failure of a member that is none of the choices, or no text, or absent.
  @inline(never)
  private func refusal(
    _ name: StaticCString, _ text: String?, isNoneOf choices: [String]
  ) -> Failure {
    let listed = "one of " + Suggestion.list(choices)
    if let text {
      guard let near = Suggestion.nearest(to: text, among: choices) else {
        return invalid(name, listed + " is expected")
      }
      return invalid(name, listed + " is expected; did you mean \"" + near + "\"?")
    }
    if optional(name) != nil { return wrongType(name, listed) }
    return Failure(.requestMissingField, "this field is required: " + listed, field: pointer(name))
  }

  public func choice<Choice: RawRepresentable & CaseIterable>(
    ifPresent name: StaticCString, _ type: Choice.Type
  ) throws(Failure) -> Choice? where Choice.RawValue == String {
    optional(name) == nil ? nil : try choice(name, type)
  }

  /// The fields of a member that is an object.
  @inline(never)
  public func fields(_ name: StaticCString, known: [StaticCString]) throws(Failure) -> Fields {
    try Fields(try required(name), at: pointer(name), known: known)
  }

  @inline(never)
  public func fields(ifPresent name: StaticCString, known: [StaticCString]) throws(Failure)
    -> Fields?
  {
    optional(name) == nil ? nil : try fields(name, known: known)
  }

  /// The integers that every JSON reader keeps exact: within ±2^53.
  public static var safe: ClosedRange<Int64> { -9_007_199_254_740_992...9_007_199_254_740_992 }
}

/// "Did you mean …?"
public enum Suggestion {
  @inline(never)
  public static func list(_ names: [String]) -> String { names.joined(separator: ", ") }

  /// What to write instead of a name that `place` does not have: a near one, or one of all.
  @inline(never)
  public static func advice(_ text: String, among names: [String], in place: String) -> String {
    if let near = nearest(to: text, among: names) { return "did you mean \"\(near)\"?" }
    return place + (names.isEmpty ? " is empty" : " has " + list(names))
  }

  /// The name with the smallest edit distance (Levenshtein), if that is at most a third of the
  /// name's length, or 1.
  public static func nearest(to text: String, among names: [String]) -> String? {
    var best: (name: String, distance: Int)?
    let given = Array(text.utf8.prefix(64))
    for name in names {
      let distance = distance(given, Array(name.utf8))
      if distance <= max(1, name.utf8.count / 3), distance < best?.distance ?? Int.max {
        best = (name, distance)
      }
    }
    return best?.name
  }

  /// The Levenshtein distance, row by row of the matrix: `row` holds the previous row and is
  /// overwritten from the left, `diagonal` keeps the value that was overwritten last.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let next = min(row[j] + 1, row[j + 1] + 1, diagonal + (a == b ? 0 : 1))
        diagonal = row[j + 1]
        row[j + 1] = next
      }
    }
    return row[right.count]
  }
}
