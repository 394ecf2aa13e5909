public import Base
import Vault

/// A moment that the row keeps, by the clocks of the time.
public struct Moment: Sendable {
  /// By the device's clock.
  public var wallMS: Int64
  /// By the monotonic clock of the boot; nil: not known.
  public var monotonicMS: Int64?
  public var bootID: String?

  public init(wallMS: Int64 = 0, monotonicMS: Int64? = nil, bootID: String? = nil) {
    (self.wallMS, self.monotonicMS, self.bootID) = (wallMS, monotonicMS, bootID)
  }

  public init(_ now: Instant) {
    self.init(wallMS: now.wallMS, monotonicMS: now.monotonicMS, bootID: now.bootID)
  }

  /// How long ago it was.
  public func ageMS(_ now: Instant) -> Int64 {
    now.ageMS(wallMS: wallMS, monotonicMS: monotonicMS, bootID: bootID)
  }
}

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
  /// The last sign-in or unlock: the user has proved to be present.
  public var authenticated = Moment()
  /// When the server last confirmed the session.
  public private(set) var validated = Moment()
  /// The server's clock minus the device's at that moment.
  public private(set) var validatedOffsetMS: Int64 = 0
  /// Server time at which the access token expires.
  public var expiresMS: Int64 = 0
  /// Device time at which the server last listed the memberships.
  public var membershipsMS: Int64 = 0
  /// Locked by the user.
  public var locked: Bool = false
  /// When a refresh without a result was begun; 0: none is under way.
  public var intentMS: Int64 = 0
  /// When the app left the screen; nil: it is back.
  public var background: Moment?
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
    authenticated = Moment()
    validated = Moment()
    validatedOffsetMS = 0
    expiresMS = 0
    membershipsMS = 0
    locked = false
    intentMS = 0
    background = nil
  }

  /// The app leaves the screen. `goesOn`: nobody has come back since an earlier report. The time away
  /// so far counts then, and from now on this boot's clock counts: the device's clock may be corrected.
  public func noteBackground(_ now: Instant, goesOn: Bool) {
    let awayMS = goesOn ? max(0, background?.ageMS(now) ?? 0) : 0
    background = Moment(
      wallMS: now.wallMS - awayMS, monotonicMS: now.monotonicMS - awayMS, bootID: now.bootID)
  }

  // MARK: Validation

  /// The server's time of the last confirmation.
  public var validatedServerMS: Int64 { validated.wallMS + validatedOffsetMS }

  /// The server has confirmed the session. `serverMS` is its time.
  ///
  /// The clock may have been corrected since the memberships were listed, so their time is told anew by
  /// the present one: else the difference of both times would not be their age.
  public func noteValidation(_ now: Instant, serverMS: Int64) {
    if membershipsMS != 0 { membershipsMS = now.wallMS - max(0, membershipsAgeMS(now)) }
    validated = Moment(now)
    validatedOffsetMS = serverMS - now.wallMS
  }

  /// How long ago the server last confirmed the session.
  ///
  /// Within a boot the monotonic clock tells. Across boots the device's clock may have been
  /// corrected or not: either it still differs from the server's as it did then, or it is right
  /// now. The shorter of both times counts, because a session must not end by a wrong clock.
  public func validatedAgeMS(_ now: Instant) -> Int64 {
    if !now.bootID.isEmpty, validated.bootID == now.bootID, let since = validated.monotonicMS,
      now.monotonicMS >= since
    {
      return now.monotonicMS - since
    }
    let byDevice = now.wallMS - validated.wallMS
    return min(byDevice, byDevice - validatedOffsetMS)
  }

  /// How long ago the server last listed the memberships, which also confirmed the session.
  public func membershipsAgeMS(_ now: Instant) -> Int64 {
    validatedAgeMS(now) + max(0, validated.wallMS - membershipsMS)
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
    expiresMS = row.int(Column.expiresMS)
    membershipsMS = row.int(Column.membershipsMS)
    locked = row.int(Column.locked) != 0
    validatedOffsetMS = row.int(Column.validatedOffsetMS)
    cacheKey = row.blob(ifPresent: Column.cacheKey)
    intentMS = row.int(Column.intentMS)
    func moment(_ wallMS: Int64, _ monotonic: Column, _ boot: Column) -> Moment {
      Moment(
        wallMS: wallMS, monotonicMS: row.int(ifPresent: monotonic),
        bootID: row.text(ifPresent: boot)
      )
    }
    authenticated = moment(
      row.int(Column.authenticatedMS), .authenticatedMonotonicMS, .authenticatedBoot)
    validated = moment(row.int(Column.validatedMS), .validatedMonotonicMS, .validatedBoot)
    background = row.int(ifPresent: Column.backgroundWallMS).map {
      moment($0, .backgroundMonotonicMS, .backgroundBoot)
    }
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
    if !isTime(.authenticatedMonotonicMS) { found.authenticated.monotonicMS = nil }
    if !isTime(.validatedMonotonicMS) { found.validated.monotonicMS = nil }
    if !isTime(.backgroundMonotonicMS) { found.background?.monotonicMS = nil }
    return found
  }
}
