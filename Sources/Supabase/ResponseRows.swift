public import Base

/// The array in a response's body, read row by row.
///
/// An array of small rows costs up to 9 times its text as jansson builds it, and one of `{}` 75 times. So
/// each row is built when it is its turn, and released before the next one. All were checked before that,
/// so that an array which breaks off is refused as a whole before any row counts. A row that costs too
/// much, is nested too deep, or has a number that no type here holds, is null instead: it stops no other.
public final class ResponseRows: Sequence {
  private let text: ResponseText
  public let count: Int
  /// The size of the array as text.
  var byteCount: Int { text.count }

  /// nil when the text is not an array, or one of its rows cannot be read.
  init?(_ text: ResponseText) {
    guard let count = text.withRows({ ResponseRows.count($0) }) ?? nil else { return nil }
    self.text = text
    self.count = count
  }

  private static func count(_ given: JSONRows) -> Int? {
    var rows = given
    var count = 0
    while let row = rows.next() {
      guard ResponseText.canRead(row) else { return nil }
      count += 1
    }
    return rows.isComplete ? count : nil
  }

  /// The first row, if there is one.
  public var first: JSON? {
    var rows = makeIterator()
    return rows.next()
  }

  public func makeIterator() -> Iterator { Iterator(self) }

  public struct Iterator: IteratorProtocol {
    private let rows: ResponseRows
    private var pieces: JSONRows?

    init(_ rows: ResponseRows) {
      self.rows = rows
      // The text lives as long as `rows`, and jansson does not move it.
      pieces = rows.text.withRows { $0 }
    }

    /// Without memory there may be fewer rows: then the call commits nothing (`JSON.checkMemory`).
    public mutating func next() -> JSON? { pieces?.next().flatMap { ResponseText.row($0) } }
  }

  /// The rows, of which the plain ones are not built. Without memory there may be fewer, as in `next`.
  func forEachRow<Failed: Error>(
    _ body: (ResponseRow) throws(Failed) -> Void
  ) throws(Failed) {
    guard var pieces = text.withRows({ $0 }) else { return }
    while let piece = pieces.next() {
      if let row = PlainObject(piece) {
        try body(.plain(row))
      } else if let row = ResponseText.row(piece) {
        try body(.built(row))
      }
    }
  }
}

/// A row of an answer: read in place where it is plain, else built.
public enum ResponseRow {
  case plain(PlainObject)
  case built(JSON)

  func string(_ name: StaticCString) -> String? {
    switch self {
    case .plain(let row): row.string(name)
    case .built(let row): row.string(name)
    }
  }

  func uuid(_ name: StaticCString) -> UUID? {
    switch self {
    case .plain(let row): row.utf8(name).flatMap { UUID(utf8: $0) }
    case .built(let row): row.uuid(name)
    }
  }

  /// Whether the value is a text or null, or there is none.
  func isTextOrNull(_ name: StaticCString) -> Bool {
    switch self {
    case .plain(let row): !row.isOther(name)
    case .built(let row): row[name].map { $0.isNull || $0.kind == .string } ?? true
    }
  }

  /// The row with these columns alone. Throws `memory.exhausted`.
  func text(of columns: [String]) throws(Failure) -> JSONText {
    switch self {
    case .plain(let row): return try row.text(of: columns)
    case .built(let row):
      row.keepMembers(columns)
      return try row.text()
    }
  }
}

/// The text of a response's body, and how much memory may be used to read it.
///
/// An answer of n bytes costs n as text. One value, or one row, may be built for 6 n. That allows one long
/// text: jansson takes 4 n for it. Small answers may cost a fixed amount, whatever their shape.
struct ResponseText {
  private let text: JSON
  private let start: Int

  /// nil when the body is not a string.
  init?(_ text: JSON) {
    self.text = text
    // Some servers begin with the mark of UTF-8.
    guard let isMarked = text.withUTF8({ $0.starts(with: [0xEF, 0xBB, 0xBF]) }) else { return nil }
    start = isMarked ? 3 : 0
  }

  /// What a body holds.
  enum Content {
    case value(JSON)
    case array
    /// No JSON, more than `most` values, or a value that costs too much.
    case nothing
  }

  func content(_ most: Int) -> Content {
    with { text -> Content in
      let size = JSONMeasure(text)
      let isArray = JSONRows(text) != nil
      guard size.isWithin(values: most) else {
        return isArray && size.depth > JSON.maxDepth ? .array : .nothing
      }
      if isArray { return .array }
      guard size.bytes <= ResponseText.budget(text, 6),
        let value = try? JSON.parse(text, size, .tolerant, most: most)
      else { return .nothing }
      return .value(value)
    } ?? .nothing
  }

  /// Whether `row` will return something for this text, if there is memory.
  static func canRead(_ text: UnsafeRawBufferPointer) -> Bool {
    // No text costs more than 75 times its size.
    let isCheap = text.count <= smallBudget / 75
    return isCheap && JSONGrammar.surelyAccepts(text) || row(text) != nil
  }

  /// A row; null if it costs too much, is nested too deep or has too large a number, nil if it is no JSON.
  static func row(_ text: UnsafeRawBufferPointer) -> JSON? {
    do throws(Failure) {
      return try JSON.parse(text, .tolerant, bytes: budget(text, 6), scalars: true)
    } catch {
      let isTooLarge = error.code == .requestTooDeep || error.code == .requestTooManyValues
      return isTooLarge || error.isOfNumber ? .null : nil
    }
  }

  private static var smallBudget: Int { 1 << 19 }

  private static func budget(_ text: UnsafeRawBufferPointer, _ times: Int) -> Int {
    max(times * text.count, smallBudget)
  }

  func withRows<Result>(_ body: (JSONRows) -> Result) -> Result? {
    with { text in JSONRows(text).map { body($0) } } ?? nil
  }

  var count: Int { with { $0.count } ?? 0 }

  private func with<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
    text.withUTF8 { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
  }
}
