public import Base

/// Sign-ins under way: a sealed PKCE verifier under a random `state`, or what belongs to a nonce under
/// its tag.
public struct SignInTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  public func add(state: [UInt8], sealed: [UInt8], now: SteadyTime) throws(Failure) {
    try database.run(
      "INSERT INTO sign_in(state, sealed, created_ms) VALUES (?, ?, ?)", .blob(state),
      .blob(sealed), .int(now.ms))
  }

  public func find(state: [UInt8]) throws(Failure) -> (sealed: [UInt8], created: SteadyTime)? {
    try database.first(
      "SELECT sealed, created_ms FROM sign_in WHERE state = ?", .blob(state)
    ) { (row) throws(Failure) in (row.blob(0), SteadyTime(ms: row.int(1))) }
  }

  /// All of them, the newest first.
  public func all() throws(Failure) -> [(state: [UInt8], sealed: [UInt8], created: SteadyTime)] {
    try database.all(
      "SELECT state, sealed, created_ms FROM sign_in ORDER BY created_ms DESC, state"
    ) { (row) throws(Failure) in (row.blob(0), row.blob(1), SteadyTime(ms: row.int(2))) }
  }

  /// Remove all but the newest `count`.
  public func keepNewest(_ count: Int) throws(Failure) {
    try database.run(
      """
      DELETE FROM sign_in WHERE state NOT IN
        (SELECT state FROM sign_in ORDER BY created_ms DESC, state LIMIT ?)
      """, .int(Int64(count)))
  }

  /// Erase all verifiers; the states stay known as cancelled. Returns how many there were.
  public func cancelAll() throws(Failure) -> Int {
    try database.run("UPDATE sign_in SET sealed = x'' WHERE sealed != x''")
  }

  /// True for exactly one caller, which may then use the verifier.
  public func remove(state: [UInt8]) throws(Failure) -> Bool {
    try database.run("DELETE FROM sign_in WHERE state = ?", .blob(state)) == 1
  }

  public func removeAll() throws(Failure) { try database.run("DELETE FROM sign_in") }

  public func removeOlder(than created: SteadyTime) throws(Failure) {
    try database.run("DELETE FROM sign_in WHERE created_ms < ?", .int(created.ms))
  }
}
