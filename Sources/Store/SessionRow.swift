public import Base
import Vault

/// The session row: one per data folder, compared and swapped by its generation.
public final class SessionRow {
  /// Raised when the user, the tokens, the wraps, the lock or the choice change. The other columns
  /// change without that.
  public var generation: Int64 = 0
  /// The user's tag; nil when signed out.
  public var owner: [UInt8]?
  /// Why the last session ended, until the next sign-in.
  public var ended: String?
  /// The vault key, wrapped by the session key; present only while unlocked.
  public var wrapSession: [UInt8]?
  /// The vault key, wrapped by the biometric key.
  public var wrapBiometric: [UInt8]?
  /// The wrap that lasts as long as its vault; empty: there is none.
  public var lastingWrap: [UInt8] { wrapBiometric ?? wrapSession ?? [] }
  public var tokens: [UInt8]?
  public var choice: [UInt8]?
  public var memberships: [UInt8]?
  /// The key of the cache, sealed like the values above.
  public var cacheKey: [UInt8]?
  /// Device time of the last sign-in or unlock, and the same moment by the monotonic clock.
  public private(set) var authenticatedMS: Int64 = 0
  public private(set) var authenticatedMonotonicMS: Int64?
  public private(set) var authenticatedBoot: String?
  /// Device time at which the server last confirmed the session.
  public private(set) var validatedMS: Int64 = 0
  /// The server's clock minus the device's at that moment.
  public private(set) var validatedOffsetMS: Int64 = 0
  /// The same moment by the monotonic clock, and the boot that it belongs to.
  public private(set) var validatedMonotonicMS: Int64?
  public private(set) var validatedBoot: String?
  /// Server time at which the access token expires.
  public var expiresMS: Int64 = 0
  /// Device time at which the server last listed the memberships.
  public var membershipsMS: Int64 = 0
  /// Locked by the user.
  public var locked: Bool = false
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
    wrapSession = nil
    wrapBiometric = nil
    tokens = nil
    choice = nil
    memberships = nil
    cacheKey = nil
    authenticatedMS = 0
    authenticatedMonotonicMS = nil
    authenticatedBoot = nil
    validatedMS = 0
    validatedOffsetMS = 0
    validatedMonotonicMS = nil
    validatedBoot = nil
    expiresMS = 0
    membershipsMS = 0
    locked = false
    intentMS = 0
    forgetBackground()
  }

  /// The app leaves the screen. `goesOn`: nobody has come back since an earlier report. The time away
  /// so far counts then, and from now on this boot's clock counts: the device's clock may be corrected.
  public func noteBackground(_ now: Instant, goesOn: Bool) {
    var awayMS: Int64 = 0
    if goesOn, let since = backgroundWallMS {
      awayMS = max(
        0, now.ageMS(wallMS: since, monotonicMS: backgroundMonotonicMS, bootID: backgroundBoot))
    }
    backgroundWallMS = now.wallMS - awayMS
    backgroundMonotonicMS = now.monotonicMS - awayMS
    backgroundBoot = now.bootID
  }

  /// Clear the times of the app's last move to the background.
  public func forgetBackground() {
    backgroundWallMS = nil
    backgroundMonotonicMS = nil
    backgroundBoot = nil
  }

  // MARK: Validation

  /// The server's time of the last confirmation.
  public var validatedServerMS: Int64 { validatedMS + validatedOffsetMS }

  /// The server has confirmed the session. `serverMS` is its time.
  ///
  /// The clock may have been corrected since the memberships were listed, so their time is told anew by
  /// the present one: else the difference of both times would not be their age.
  public func noteValidation(_ now: Instant, serverMS: Int64) {
    if membershipsMS != 0 { membershipsMS = now.wallMS - max(0, membershipsAgeMS(now)) }
    validatedMS = now.wallMS
    validatedOffsetMS = serverMS - now.wallMS
    validatedMonotonicMS = now.monotonicMS
    validatedBoot = now.bootID
  }

  /// How long ago the server last confirmed the session.
  ///
  /// Within a boot the monotonic clock tells. Across boots the device's clock may have been
  /// corrected or not: either it still differs from the server's as it did then, or it is right
  /// now. The shorter of both times counts, because a session must not end by a wrong clock.
  public func validatedAgeMS(_ now: Instant) -> Int64 {
    if !now.bootID.isEmpty, validatedBoot == now.bootID, let validatedMonotonicMS,
      now.monotonicMS >= validatedMonotonicMS
    {
      return now.monotonicMS - validatedMonotonicMS
    }
    let byDevice = now.wallMS - validatedMS
    return min(byDevice, byDevice - validatedOffsetMS)
  }

  /// How long ago the server last listed the memberships, which also confirmed the session.
  public func membershipsAgeMS(_ now: Instant) -> Int64 {
    validatedAgeMS(now) + max(0, validatedMS - membershipsMS)
  }

  // MARK: Proof of the user

  /// The user has proved to be present: by a sign-in, or by biometrics. Their time away is over; if the app has left
  /// the screen and is not back, it begins anew.
  public func noteAuthentication(_ now: Instant, isOnScreen: Bool = true) {
    authenticatedMS = now.wallMS
    authenticatedMonotonicMS = now.monotonicMS
    authenticatedBoot = now.bootID
    if isOnScreen || backgroundWallMS == nil { return forgetBackground() }
    noteBackground(now, goesOn: false)
  }

  /// How long ago the user last proved to be present.
  public func authenticatedAgeMS(_ now: Instant) -> Int64 {
    now.ageMS(
      wallMS: authenticatedMS, monotonicMS: authenticatedMonotonicMS, bootID: authenticatedBoot)
  }

  // MARK: Columns

  /// The table's columns, in their order: `SELECT *` has the same positions.
  private enum Column: Int32 {
    case id, generation, owner, ended, wrapSession, wrapBiometric
    case tokens, choice, memberships, cacheKey
    case authenticatedMS, authenticatedMonotonicMS, authenticatedBoot
    case validatedMS, validatedOffsetMS, validatedMonotonicMS, validatedBoot
    case expiresMS, membershipsMS, locked, intentMS
    case backgroundWallMS, backgroundMonotonicMS, backgroundBoot, seenWallMS
  }

  /// A row of `SELECT * FROM session`.
  init(_ row: Row) {
    generation = row.count(Column.generation)
    owner = row.blob(ifPresent: Column.owner)
    ended = row.text(ifPresent: Column.ended)
    wrapSession = row.blob(ifPresent: Column.wrapSession)
    wrapBiometric = row.blob(ifPresent: Column.wrapBiometric)
    tokens = row.blob(ifPresent: Column.tokens)
    choice = row.blob(ifPresent: Column.choice)
    memberships = row.blob(ifPresent: Column.memberships)
    authenticatedMS = row.int(Column.authenticatedMS)
    validatedMS = row.int(Column.validatedMS)
    expiresMS = row.int(Column.expiresMS)
    membershipsMS = row.int(Column.membershipsMS)
    locked = row.int(Column.locked) != 0
    validatedOffsetMS = row.int(Column.validatedOffsetMS)
    validatedMonotonicMS = row.int(ifPresent: Column.validatedMonotonicMS)
    validatedBoot = row.text(ifPresent: Column.validatedBoot)
    authenticatedMonotonicMS = row.int(ifPresent: Column.authenticatedMonotonicMS)
    authenticatedBoot = row.text(ifPresent: Column.authenticatedBoot)
    cacheKey = row.blob(ifPresent: Column.cacheKey)
    intentMS = row.int(Column.intentMS)
    backgroundWallMS = row.int(ifPresent: Column.backgroundWallMS)
    backgroundMonotonicMS = row.int(ifPresent: Column.backgroundMonotonicMS)
    backgroundBoot = row.text(ifPresent: Column.backgroundBoot)
    seenWallMS = row.int(Column.seenWallMS)
  }

  /// Whether nobody is signed in by a row of a damaged file.
  static func isSignedOut(_ row: Row) -> Bool {
    row.integer(Column.generation) != nil && row.isNull(Column.owner.rawValue)
  }

  /// A row of a damaged file, if it has the form of a user's: it may be of another table. The seals are
  /// opened at the first use. Numbers that cannot be read are 0; what a lock depends on counts against the
  /// user then.
  static func salvaged(_ row: Row) -> SessionRow? {
    let found = SessionRow(row)
    let sealed: [Column] = [
      .wrapSession, .wrapBiometric, .tokens, .choice, .memberships, .cacheKey,
    ]
    for column in sealed where !row.isNull(column.rawValue) {
      guard row.isBlob(column), Key.isSealed(row.blob(column)) else { return nil }
    }
    guard row.isBlob(Column.owner), found.owner?.count == Key.tagLength, found.tokens != nil else {
      return nil
    }
    // A session that has ended belongs to nobody.
    found.ended = nil
    func isTime(_ column: Column) -> Bool { row.integer(column).map(Row.times.contains) ?? false }
    found.locked = row.integer(Column.locked) != 0
    if !isTime(.seenWallMS) { found.seenWallMS = Row.times.upperBound }
    // Without the monotonic clock's time the device's counts, which is 0 where it cannot be read, too.
    if !isTime(.authenticatedMonotonicMS) { found.authenticatedMonotonicMS = nil }
    if !isTime(.validatedMonotonicMS) { found.validatedMonotonicMS = nil }
    if !isTime(.backgroundMonotonicMS) { found.backgroundMonotonicMS = nil }
    return found
  }
}
