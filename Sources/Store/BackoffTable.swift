public import Base

/// For each service, the failures in a row and the time before which it is not called.
public struct BackoffTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  public func read(_ service: String) throws(Failure) -> (attempts: Int64, notBeforeMS: Int64) {
    try database.first(
      "SELECT attempts, not_before_ms FROM backoff WHERE service = ?", .text(service)
    ) { (row) throws(Failure) in (row.int(0), row.int(1)) } ?? (0, 0)
  }

  public func set(_ service: String, attempts: Int64, notBeforeMS: Int64) throws(Failure) {
    try database.run(
      """
      INSERT INTO backoff(service, attempts, not_before_ms) VALUES (?1, ?2, ?3)
      ON CONFLICT(service) DO UPDATE SET attempts = ?2, not_before_ms = ?3
      """, .text(service), .int(attempts), .int(notBeforeMS))
  }

  public func clear(_ service: String) throws(Failure) {
    try database.run("DELETE FROM backoff WHERE service = ?", .text(service))
  }
}
