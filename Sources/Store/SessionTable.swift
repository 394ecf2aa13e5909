public import Base

/// The session row's table: a compare-and-swap on the generation. The row always exists.
public struct SessionTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Outside a transaction the same object is returned until the file changes, so the caller must
  /// not modify it. Inside one the row is read anew.
  public func read() throws(Failure) -> SessionRow {
    let cache = database.currentReadCache
    if let row = cache?.session { return row }
    let row = try readAnew()
    cache?.session = row
    return row
  }

  /// The row, read from the file itself.
  public func readAnew() throws(Failure) -> SessionRow {
    let found = try database.first("SELECT * FROM session WHERE id = 1") {
      (row) throws(Failure) in SessionRow(row)
    }
    guard let found else { throw database.damage("the session row is missing") }
    return found
  }

  /// Store `row` if the stored generation is still `expected`. False: another writer came first.
  public func write(_ row: SessionRow, expecting expected: Int64) throws(Failure) -> Bool {
    database.readCache = nil
    let changed = try database.run(
      """
      UPDATE session SET generation = ?2, owner = ?3, ended = ?4, wrap_session = ?5,
        wrap_biometric = ?6, tokens = ?7, choice = ?8, memberships = ?9, authenticated_ms = ?10,
        validated_ms = ?11, expires_ms = ?12, memberships_ms = ?13, locked = ?14,
        validated_offset_ms = ?15, intent_ms = ?16, background_wall_ms = ?17, background_monotonic_ms = ?18,
        background_boot = ?19, seen_wall_ms = ?20, validated_monotonic_ms = ?21,
        validated_boot = ?22, authenticated_monotonic_ms = ?23, authenticated_boot = ?24,
        cache_key = ?25
      WHERE id = 1 AND generation = ?1
      """,
      .int(expected), .int(row.generation), Value(row.owner), Value(row.ended),
      Value(row.wrapSession), Value(row.wrapBiometric), Value(row.tokens), Value(row.choice),
      Value(row.memberships), .int(row.authenticatedMS), .int(row.validatedMS),
      .int(row.expiresMS), .int(row.membershipsMS), .int(row.locked ? 1 : 0),
      .int(row.validatedOffsetMS), .int(row.intentMS), Value(row.backgroundWallMS),
      Value(row.backgroundMonotonicMS), Value(row.backgroundBoot), .int(row.seenWallMS),
      Value(row.validatedMonotonicMS), Value(row.validatedBoot),
      Value(row.authenticatedMonotonicMS), Value(row.authenticatedBoot), Value(row.cacheKey))
    return changed == 1
  }
}
