import CSQLite

/// The current row of a statement; valid only inside the closure that receives it.
///
/// A number that the library cannot have stored, and what is no number where one belongs, is damage:
/// somebody else or a failing disk wrote it. The reader gets 0, and `Database.each` throws when the
/// closure has ended. So no number of a file overflows in a sum.
public struct Row {
  let statement: OpaquePointer
  unowned(unsafe) let database: Database

  /// Times and differences of times: two million years in milliseconds. A sum of a hundred fits.
  static var times: ClosedRange<Int64> { -(1 << 56)...1 << 56 }
  /// Counts, sizes, and the numbers of rows, events and generations. JSON holds them, and the next one.
  static var counts: ClosedRange<Int64> { 0...1 << 52 }

  public func isNull(_ column: Int32) -> Bool {
    sqlite3_column_type(statement, column) == SQLITE_NULL
  }

  @inline(never)
  private func number(_ column: Int32, in range: ClosedRange<Int64>) -> Int64 {
    if let number = integer(column), range.contains(number) { return number }
    database.sawStrangeNumber = true
    return 0
  }

  /// Any whole number of 64 bits; nil: something else.
  public func integer(_ column: Int32) -> Int64? {
    sqlite3_column_type(statement, column) == SQLITE_INTEGER
      ? sqlite3_column_int64(statement, column) : nil
  }

  public func int(_ column: Int32) -> Int64 { number(column, in: Row.times) }

  public func int(ifPresent column: Int32) -> Int64? { isNull(column) ? nil : int(column) }

  public func count(_ column: Int32) -> Int64 { number(column, in: Row.counts) }

  public func blob(_ column: Int32) -> [UInt8] { Row.blob(statement, column) }

  static func blob(_ statement: OpaquePointer, _ column: Int32) -> [UInt8] {
    let count = Int(sqlite3_column_bytes(statement, column))
    guard count > 0, let start = sqlite3_column_blob(statement, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }

  /// The bytes of a value; none of null.
  func append(_ column: Int32, to bytes: inout [UInt8]) {
    let count = Int(sqlite3_column_bytes(statement, column))
    guard count > 0, let start = sqlite3_column_blob(statement, column) else { return }
    bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
  }

  public func blob(ifPresent column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }

  public func text(_ column: Int32) -> String { String(decoding: blob(column), as: UTF8.self) }

  public func text(ifPresent column: Int32) -> String? { isNull(column) ? nil : text(column) }

  func isBlob(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_BLOB }
}

/// The same by a column's name.
extension Row {
  func isBlob(_ column: some RawRepresentable<Int32>) -> Bool { isBlob(column.rawValue) }
  func int(_ column: some RawRepresentable<Int32>) -> Int64 { int(column.rawValue) }
  func integer(_ column: some RawRepresentable<Int32>) -> Int64? { integer(column.rawValue) }
  func count(_ column: some RawRepresentable<Int32>) -> Int64 { count(column.rawValue) }
  func int(
    ifPresent column: some RawRepresentable<Int32>
  ) -> Int64? { int(ifPresent: column.rawValue) }
  func blob(_ column: some RawRepresentable<Int32>) -> [UInt8] { blob(column.rawValue) }
  func blob(
    ifPresent column: some RawRepresentable<Int32>
  ) -> [UInt8]? { blob(ifPresent: column.rawValue) }
  func text(
    ifPresent column: some RawRepresentable<Int32>
  ) -> String? { text(ifPresent: column.rawValue) }
}
