public import Base

/// For each purpose of a request, the failures in a row and the time before which it is not sent.
public struct PauseTable {
  public struct Entry: Sendable {
    public let purpose: String
    public let attempts: Int64
    public let pause: Pause
    /// The server itself asked for the pause.
    public let isAsked: Bool
  }

  let database: Database

  public init(_ database: Database) { self.database = database }

  /// All entries. They are few, and most are read before each request, so they are kept as long as
  /// the file is unchanged.
  public func all() throws(Failure) -> [Entry] {
    let cache = database.currentReadCache
    if let known = cache?.pauses { return known }
    let entries = try database.all(
      "SELECT service, attempts, since_ms, not_before_ms, asked FROM pause"
    ) { (row) throws(Failure) in
      Entry(
        purpose: row.text(0), attempts: row.count(1),
        pause: Pause(since: SteadyTime(ms: row.int(2)), until: SteadyTime(ms: row.int(3))),
        isAsked: row.int(4) != 0)
    }
    cache?.pauses = entries
    return entries
  }

  public func read(_ purpose: String) throws(Failure) -> Entry {
    try all().first { $0.purpose == purpose }
      ?? Entry(purpose: purpose, attempts: 0, pause: .none, isAsked: false)
  }

  public func set(
    _ purpose: String, attempts: Int64, _ pause: Pause, isAsked: Bool = false
  ) throws(Failure) {
    database.readCache = nil
    try database.run(
      """
      INSERT INTO pause(service, attempts, since_ms, not_before_ms, asked)
        VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT(service) DO UPDATE
        SET attempts = ?2, since_ms = ?3, not_before_ms = ?4, asked = ?5
      """, .text(purpose), .int(attempts), .int(pause.since.ms), .int(pause.until.ms),
      .int(isAsked ? 1 : 0))
  }

  public func clear(_ purpose: String) throws(Failure) {
    guard try all().contains(where: { $0.purpose == purpose }) else { return }
    database.readCache = nil
    try database.run("DELETE FROM pause WHERE service = ?", .text(purpose))
  }
}
