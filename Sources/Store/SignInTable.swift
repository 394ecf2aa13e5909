public import Base

/// Sign-ins under way in a browser: the sealed PKCE verifier, found by the tag of its `state`.
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
