public import Base

/// The session row: one per data folder, compared and swapped by its generation.
public final class SessionRow {
  /// Raised by every sign-in, refresh, lock, unlock, switch of organisation and logout.
  public var generation: Int64 = 0
  /// The user's tag; nil when signed out.
  public var owner: [UInt8]?
  /// Why the last session ended, until the next sign-in.
  public var ended: String?
  /// The vault key, wrapped by the device key: only while unlocked.
  public var wrapDevice: [UInt8]?
  /// The vault key, wrapped by the biometric key.
  public var wrapBiometric: [UInt8]?
  public var tokens: [UInt8]?
  public var choice: [UInt8]?
  public var memberships: [UInt8]?
  /// Device time of the last sign-in or unlock.
  public var authenticatedMS: Int64 = 0
  /// Device time of the last proof by the server.
  public var validatedMS: Int64 = 0
  /// Server time at which the access token ends.
  public var expiresMS: Int64 = 0
  /// Device time at which the server last listed the memberships.
  public var membershipsMS: Int64 = 0
  /// The user or an idle time locked it.
  public var locked: Bool = false
  /// Online rejections with unknown codes in a row.
  public var rejections: Int64 = 0
  /// When a refresh was begun that has no result yet; 0: none.
  public var intentMS: Int64 = 0
  public var backgroundWallMS: Int64?
  public var backgroundMonotonicMS: Int64?
  public var backgroundBoot: String?
  /// The latest device time that any call has seen: a clock behind it was moved back.
  public var seenWallMS: Int64 = 0

  public init() {}

  /// As nobody's: only what orders the rows and the times stays.
  public func clear(ended: String?) {
    self.ended = ended
    owner = nil
    wrapDevice = nil
    wrapBiometric = nil
    tokens = nil
    choice = nil
    memberships = nil
    authenticatedMS = 0
    validatedMS = 0
    expiresMS = 0
    membershipsMS = 0
    locked = false
    rejections = 0
    intentMS = 0
    forgetBackground()
  }

  /// The app is back.
  public func forgetBackground() {
    backgroundWallMS = nil
    backgroundMonotonicMS = nil
    backgroundBoot = nil
  }
}

public struct SessionTable {
  let database: Database

  public init(_ database: Database) { self.database = database }

  /// Outside a transaction it may be one that was read before, as long as the file is the same:
  /// nobody may change it then.
  public func read() throws(Failure) -> SessionRow {
    let readings = database.readings
    if let row = readings?.session { return row }
    let row = try readAnew()
    readings?.session = row
    return row
  }

  private func readAnew() throws(Failure) -> SessionRow {
    let found = try database.first(
      """
      SELECT generation, owner, ended, wrap_device, wrap_biometric, tokens, choice, memberships,
        authenticated_ms, validated_ms, expires_ms, memberships_ms, locked, rejections, intent_ms,
        background_wall_ms, background_monotonic_ms, background_boot, seen_wall_ms
      FROM session WHERE id = 1
      """
    ) { (row) throws(Failure) -> SessionRow in
      let result = SessionRow()
      result.generation = row.int(0)
      result.owner = row.blob(ifPresent: 1)
      result.ended = row.text(ifPresent: 2)
      result.wrapDevice = row.blob(ifPresent: 3)
      result.wrapBiometric = row.blob(ifPresent: 4)
      result.tokens = row.blob(ifPresent: 5)
      result.choice = row.blob(ifPresent: 6)
      result.memberships = row.blob(ifPresent: 7)
      result.authenticatedMS = row.int(8)
      result.validatedMS = row.int(9)
      result.expiresMS = row.int(10)
      result.membershipsMS = row.int(11)
      result.locked = row.int(12) != 0
      result.rejections = row.int(13)
      result.intentMS = row.int(14)
      result.backgroundWallMS = row.int(ifPresent: 15)
      result.backgroundMonotonicMS = row.int(ifPresent: 16)
      result.backgroundBoot = row.text(ifPresent: 17)
      result.seenWallMS = row.int(18)
      return result
    }
    guard let found else { throw Failure(.storageDamaged, "the session row is missing") }
    return found
  }

  /// Store `row` if the stored generation is still `expected`; false: somebody was faster.
  public func write(_ row: SessionRow, expecting expected: Int64) throws(Failure) -> Bool {
    database.known = nil
    let changed = try database.run(
      """
      UPDATE session SET generation = ?2, owner = ?3, ended = ?4, wrap_device = ?5,
        wrap_biometric = ?6, tokens = ?7, choice = ?8, memberships = ?9, authenticated_ms = ?10,
        validated_ms = ?11, expires_ms = ?12, memberships_ms = ?13, locked = ?14, rejections = ?15,
        intent_ms = ?16, background_wall_ms = ?17, background_monotonic_ms = ?18,
        background_boot = ?19, seen_wall_ms = ?20
      WHERE id = 1 AND generation = ?1
      """,
      .int(expected), .int(row.generation), Value(row.owner), Value(row.ended),
      Value(row.wrapDevice), Value(row.wrapBiometric), Value(row.tokens), Value(row.choice),
      Value(row.memberships), .int(row.authenticatedMS), .int(row.validatedMS),
      .int(row.expiresMS), .int(row.membershipsMS), .int(row.locked ? 1 : 0),
      .int(row.rejections), .int(row.intentMS), Value(row.backgroundWallMS),
      Value(row.backgroundMonotonicMS), Value(row.backgroundBoot), .int(row.seenWallMS))
    return changed == 1
  }
}
