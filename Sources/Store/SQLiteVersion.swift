public import Base
import CSQLite

extension Version {
  /// The version of the loaded SQLite.
  public static var sqlite: UnsafePointer<CChar>? { sqlite3_libversion() }
}
