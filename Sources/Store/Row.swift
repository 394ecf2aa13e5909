import CSQLite

/// The current row of a statement; valid only inside the closure that receives it.
public struct Row {
  let statement: OpaquePointer

  public func isNull(_ column: Int32) -> Bool {
    sqlite3_column_type(statement, column) == SQLITE_NULL
  }

  public func int(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

  public func int(ifPresent column: Int32) -> Int64? { isNull(column) ? nil : int(column) }

  public func blob(_ column: Int32) -> [UInt8] {
    let count = Int(sqlite3_column_bytes(statement, column))
    guard count > 0, let start = sqlite3_column_blob(statement, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }

  public func blob(ifPresent column: Int32) -> [UInt8]? { isNull(column) ? nil : blob(column) }

  public func text(_ column: Int32) -> String { String(decoding: blob(column), as: UTF8.self) }

  public func text(ifPresent column: Int32) -> String? { isNull(column) ? nil : text(column) }

  // The same by a column's name.

  func isBlob<Column: RawRepresentable>(_ column: Column) -> Bool where Column.RawValue == Int32 {
    sqlite3_column_type(statement, column.rawValue) == SQLITE_BLOB
  }

  func int<Column: RawRepresentable>(_ column: Column) -> Int64 where Column.RawValue == Int32 {
    int(column.rawValue)
  }

  func int<Column: RawRepresentable>(
    ifPresent column: Column
  ) -> Int64? where Column.RawValue == Int32 { int(ifPresent: column.rawValue) }

  func blob<Column: RawRepresentable>(_ column: Column) -> [UInt8] where Column.RawValue == Int32 {
    blob(column.rawValue)
  }

  func blob<Column: RawRepresentable>(
    ifPresent column: Column
  ) -> [UInt8]? where Column.RawValue == Int32 { blob(ifPresent: column.rawValue) }

  func text<Column: RawRepresentable>(
    ifPresent column: Column
  ) -> String? where Column.RawValue == Int32 { text(ifPresent: column.rawValue) }
}
