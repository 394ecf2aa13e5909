public import Base

/// The array in a response's body, read row by row.
///
/// An array of small rows costs up to 9 times its text as jansson builds it, and one of `{}` 75
/// times. So the text is cut into rows, and each is read in place when it is its turn (`JSONRow`).
/// What cannot be read of a row stops no other row. An array that breaks off is none, so that no row
/// of it counts.
public final class ResponseRows: Sequence {
  /// The string with the rows.
  private let body: JSON
  private let rows: JSONRows
  public let count: Int
  /// The number of rows that the request asks for, on all pages from this one on; nil: unknown.
  public let total: Int?

  /// nil when the array breaks off, has more than `most` rows, or begins with an object that is no
  /// JSON. `rows` are in the string `body`, which jansson does not move.
  init?(_ rows: JSONRows, in body: JSON, most: Int, total: Int?) {
    var rest = rows
    var count = 0
    while let row = rest.next() {
      let isObject = row.first == UInt8(ascii: "{")
      guard count < most, count > 0 || !isObject || JSONRow(row).isObject else { return nil }
      count += 1
    }
    guard rest.isComplete else { return nil }
    self.body = body
    self.rows = rows
    self.count = count
    self.total = total
  }

  public func makeIterator() -> Iterator { Iterator(answer: self, rest: rows) }

  public struct Iterator: IteratorProtocol {
    /// Keeps the text.
    fileprivate let answer: ResponseRows
    fileprivate var rest: JSONRows

    @inline(never)
    public mutating func next() -> JSONRow? { rest.next().map { JSONRow($0) } }
  }

  /// The first row as a value, if there is one; null if not all of it can be read.
  public var first: JSON? {
    var rest = rows
    guard let text = rest.next() else { return JSON?.none }
    let read = try? JSON.receive(text, bytes: JSON.mostCost(text))
    return read?.isWhole == true ? read?.value : JSON.null
  }

  /// Reads a page of a list. `read` returns the place of a row, whether or not the row can be used, and
  /// why it cannot. Rows beyond `most`, which were not asked for, are left for the next page.
  func page<Place, Failed: Error>(
    most: Int = .max, _ read: (JSONRow) throws(Failed) -> (place: Place?, fault: RowFault?)
  ) throws(Failed) -> Page<Place> {
    var page = Page<Place>(total: total)
    for row in self {
      guard page.count < most else { break }
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

  static var ofRow: RowFault { RowFault(column: nil) }
}

extension JSONRow {
  /// That the row has no usable value in the column.
  func lacks(_ column: StaticCString) -> RowFault { lacks(named: column.string) }

  func lacks(named column: String) -> RowFault { RowFault(column: isObject ? column : nil) }
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
