/// The session row: one per data folder, compared and swapped by its generation.
public final class SessionRow {
  /// Raised when the user, the tokens, the wraps, the lock or the choice change. The other columns
  /// change without that.
  public var generation: Int64 = 0
  /// The user's tag; nil when signed out.
  public var owner: [UInt8]?
  /// Why the last session ended, until the next sign-in.
  public var ended: String?
  /// The vault key, wrapped by the device key; present only while unlocked.
  public var wrapDevice: [UInt8]?
  /// The vault key, wrapped by the biometric key.
  public var wrapBiometric: [UInt8]?
  public var tokens: [UInt8]?
  public var choice: [UInt8]?
  public var memberships: [UInt8]?
  /// Device time of the last sign-in or unlock.
  public var authenticatedMS: Int64 = 0
  /// Device time at which the server last confirmed the session.
  public var validatedMS: Int64 = 0
  /// Server time at which the access token expires.
  public var expiresMS: Int64 = 0
  /// Device time at which the server last listed the memberships.
  public var membershipsMS: Int64 = 0
  /// Locked by the user, or without a biometric wrap.
  public var locked: Bool = false
  /// Consecutive rejections by the server with unknown codes.
  public var rejections: Int64 = 0
  /// When a refresh without a result was begun; 0: none is under way.
  public var intentMS: Int64 = 0
  public var backgroundWallMS: Int64?
  public var backgroundMonotonicMS: Int64?
  public var backgroundBoot: String?
  /// The device time of the last change of the generation or move to the background; an earlier
  /// time means that the clock was set back.
  public var seenWallMS: Int64 = 0

  public init() {}

  /// Sign out: clear all but the generation and the latest device time.
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

  /// Clear the times of the app's last move to the background.
  public func forgetBackground() {
    backgroundWallMS = nil
    backgroundMonotonicMS = nil
    backgroundBoot = nil
  }

  /// The table's columns, in their order: `SELECT *` and salvaged records have the same positions.
  private enum Column: Int32, CaseIterable {
    case id, generation, owner, ended, wrapDevice, wrapBiometric, tokens, choice, memberships
    case authenticatedMS, validatedMS, expiresMS, membershipsMS, locked, rejections, intentMS
    case backgroundWallMS, backgroundMonotonicMS, backgroundBoot, seenWallMS
  }

  /// A row of `SELECT * FROM session`.
  init(_ row: Row) {
    generation = row.int(Column.generation)
    owner = row.blob(ifPresent: Column.owner)
    ended = row.text(ifPresent: Column.ended)
    wrapDevice = row.blob(ifPresent: Column.wrapDevice)
    wrapBiometric = row.blob(ifPresent: Column.wrapBiometric)
    tokens = row.blob(ifPresent: Column.tokens)
    choice = row.blob(ifPresent: Column.choice)
    memberships = row.blob(ifPresent: Column.memberships)
    authenticatedMS = row.int(Column.authenticatedMS)
    validatedMS = row.int(Column.validatedMS)
    expiresMS = row.int(Column.expiresMS)
    membershipsMS = row.int(Column.membershipsMS)
    locked = row.int(Column.locked) != 0
    rejections = row.int(Column.rejections)
    intentMS = row.int(Column.intentMS)
    backgroundWallMS = row.int(ifPresent: Column.backgroundWallMS)
    backgroundMonotonicMS = row.int(ifPresent: Column.backgroundMonotonicMS)
    backgroundBoot = row.text(ifPresent: Column.backgroundBoot)
    seenWallMS = row.int(Column.seenWallMS)
  }

  /// A salvaged record, if it has the session row's form and belongs to a user.
  public init?(_ record: Salvage.Record) {
    guard record.rowID == 1, record.columns.count == Column.allCases.count,
      let generation = record[Column.generation].int, let owner = record.tag(Column.owner),
      let tokens = record[Column.tokens].blob
    else { return nil }
    self.generation = generation
    self.owner = owner
    self.tokens = tokens
    ended = record[Column.ended].text
    wrapDevice = record[Column.wrapDevice].blob
    wrapBiometric = record[Column.wrapBiometric].blob
    choice = record[Column.choice].blob
    memberships = record[Column.memberships].blob
    authenticatedMS = record[Column.authenticatedMS].int ?? 0
    validatedMS = record[Column.validatedMS].int ?? 0
    expiresMS = record[Column.expiresMS].int ?? 0
    membershipsMS = record[Column.membershipsMS].int ?? 0
    locked = record[Column.locked].int != 0
    rejections = record[Column.rejections].int ?? 0
    intentMS = record[Column.intentMS].int ?? 0
    backgroundWallMS = record[Column.backgroundWallMS].int
    backgroundMonotonicMS = record[Column.backgroundMonotonicMS].int
    backgroundBoot = record[Column.backgroundBoot].text
    seenWallMS = record[Column.seenWallMS].int ?? 0
  }
}
