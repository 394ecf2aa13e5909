public import Base

/// The array in a response's body, read row by row.
///
/// An array of small rows costs up to 9 times its text as jansson builds it, and one of `{}` 75 times. So
/// each row is built when it is its turn, and released before the next one. All were checked before that,
/// so that an array which breaks off is refused as a whole before any row counts. Of a row that costs too
/// much, is nested too deep, or has a number that no type here holds, what can be read is read
/// (`JSON.receive`): it stops no other.
public final class ResponseRows: Sequence {
  private let text: ResponseText
  public let count: Int
  /// The number of rows that the request asks for, on all pages from this one on; nil: unknown.
  public let total: Int?

  /// nil when the text is not an array, has more than `most` rows, or one that cannot be read.
  init?(_ text: ResponseText, most: Int, total: Int?) {
    guard let count = text.withRows({ ResponseRows.count($0, most) }) ?? nil else { return nil }
    self.text = text
    self.count = count
    self.total = total
  }

  private static func count(_ given: JSONRows, _ most: Int) -> Int? {
    var rows = given
    var count = 0
    while let row = rows.next() {
      guard count < most, ResponseText.canRead(row) else { return nil }
      count += 1
    }
    return rows.isComplete ? count : nil
  }

  /// The first row, if there is one; null if not all of it can be read.
  public var first: JSON? {
    var pieces = text.withRows { $0 }
    return pieces?.next().flatMap { ResponseText.row($0) }.map { $0.isWhole ? $0.value : .null }
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
    public mutating func next() -> JSON? {
      pieces?.next().flatMap { ResponseText.row($0) }.map { $0.value }
    }
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

  /// Reads a page of a list. `read` returns the place of a row, whether or not the row can be used, and
  /// why it cannot. Rows beyond `most`, which were not asked for, are left for the next page.
  func page<Place, Failed: Error>(
    most: Int = .max, _ read: (ResponseRow) throws(Failed) -> (place: Place?, fault: RowFault?)
  ) throws(Failed) -> Page<Place> {
    var page = Page<Place>(total: total)
    try forEachRow { (row) throws(Failed) in
      guard page.count < most else { return }
      let (place, fault) = try read(row)
      page.count += 1
      if let place { page.last = place }
      if let fault {
        page.skipped += 1
        page.fault = page.fault ?? fault
      }
    }
    return page
  }
}

/// Why a row cannot be used.
public struct RowFault: Equatable, Sendable {
  /// The column without a usable value; nil: the row is no object, or too large.
  public let column: String?

  fileprivate init(_ column: String) { self.column = column }
  private init() { column = nil }

  static var ofRow: RowFault { RowFault() }
}

/// A page of a list: memberships, contacts, or ids.
///
/// A row that cannot be used is skipped and counted: it costs itself, and no other. A list with such a
/// row, or one that was cut, does not prove that what it lacks has ended.
public struct Page<Place> {
  private let total: Int?
  /// The number of rows, usable or not.
  public fileprivate(set) var count = 0
  public fileprivate(set) var skipped = 0
  /// Of the first row that was skipped.
  public fileprivate(set) var fault: RowFault?
  /// The place of the last row that has one, usable or not: the next page begins behind it.
  public fileprivate(set) var last: Place?

  fileprivate init(total: Int?) { self.total = total }

  /// Whether the list ends here. Only an empty page is surely the last one, if the server did not say
  /// how many rows there are: a short one may be short because the server caps its pages (PostgREST's
  /// `db-max-rows`), which it does not say, and the cap may change between two pages.
  public var isLast: Bool { total.map { count >= $0 } ?? (count == 0) }

  /// Whether the server counts rows from here on, and sends none: the list does not end here.
  public var isCut: Bool { count == 0 && !isLast }
}

/// A row of an answer: read in place where it is plain, else built.
public enum ResponseRow {
  case plain(PlainObject)
  case built(ReceivedJSON)

  /// Whether all of its values could be read.
  var isWhole: Bool {
    switch self {
    case .plain: true
    case .built(let row): row.isWhole
    }
  }

  func string(_ name: StaticCString) -> String? {
    switch self {
    case .plain(let row): row.string(name)
    case .built(let row): row.value.string(name)
    }
  }

  func string(named name: String) -> String? {
    switch self {
    case .plain(let row): row.string(named: name)
    case .built(let row): row.value[member: name]?.string
    }
  }

  func uuid(_ name: StaticCString) -> UUID? {
    switch self {
    case .plain(let row): row.utf8(name).flatMap { UUID(utf8: $0) }
    case .built(let row): row.value.uuid(name)
    }
  }

  /// That the row has no usable value in the column.
  func lacks(_ column: StaticCString) -> RowFault { lacks(named: column.string) }

  func lacks(named column: String) -> RowFault {
    if case .built(let row) = self, row.value.kind != .object { return .ofRow }
    return RowFault(column)
  }

  /// A value that is no text; nil for a plain row, which has none but numbers and truth values.
  func object(_ name: StaticCString) -> JSON? {
    switch self {
    case .plain: nil
    case .built(let row): row.value[name]
    }
  }

  /// Whether the value is a text or null, or there is none.
  func isTextOrNull(_ name: StaticCString) -> Bool {
    switch self {
    case .plain(let row): !row.isOther(name)
    case .built(let row): row.value[name].map { $0.isNull || $0.kind == .string } ?? true
    }
  }

  /// Whether the value is null, or there is none.
  func isNull(_ name: StaticCString) -> Bool { isTextOrNull(name) && string(name) == nil }

  /// The row with these columns alone. Throws `memory.exhausted`.
  func text(of columns: [String]) throws(Failure) -> JSONText {
    switch self {
    case .plain(let row): return try row.text(of: columns)
    case .built(let row):
      row.value.keepMembers(columns)
      return try row.value.text()
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
    /// No JSON, more than `most` values that are needed, or a value that costs too much.
    case nothing
  }

  func content(_ dialect: JSON.Dialect, _ most: Int) -> Content {
    with { text -> Content in
      if JSONRows(text) != nil { return .array }
      let budget = ResponseText.budget(text)
      guard let received = try? JSON.receive(text, dialect, most: most, bytes: budget) else {
        return .nothing
      }
      let isObject = received.value.kind == .object
      return isObject ? .value(received.value) : .nothing
    } ?? .nothing
  }

  /// Whether `row` will return something for this text, if there is memory.
  static func canRead(_ text: UnsafeRawBufferPointer) -> Bool {
    // No text costs more than 75 times its size.
    let isCheap = text.count <= smallBudget / 75
    return isCheap && JSONGrammar.surelyAccepts(text) || row(text) != nil
  }

  /// A row; null if it costs too much in any case, nil if it is no JSON.
  static func row(_ text: UnsafeRawBufferPointer) -> ReceivedJSON? {
    do throws(Failure) { return try JSON.receive(text, bytes: budget(text)) } catch {
      return error.isOfSize ? .nothing : nil
    }
  }

  private static var smallBudget: Int { 1 << 19 }

  private static func budget(_ text: UnsafeRawBufferPointer) -> Int {
    max(6 * text.count, smallBudget)
  }

  func withRows<Result>(_ body: (JSONRows) -> Result) -> Result? {
    with { text in JSONRows(text).map { body($0) } } ?? nil
  }

  private func with<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
    text.withUTF8 { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
  }
}
