import Base
import Store
import TestSupport
import Testing

@testable import Engine

@Suite struct TokenStateTests {
  private func row(expiresMS: Int64) -> SessionRow {
    let row = SessionRow()
    row.expiresMS = expiresMS
    return row
  }

  @Test func aTokenOfThisProcessIsMeasuredByTheMonotonicClock() throws {
    // Given
    let rig = try Rig()
    let row = row(expiresMS: 77)
    rig.tokens.replace(expiresMS: 77, lifetimeMS: 3_600_000, rig.now)
    // When the device's clock jumps a day
    rig.advance(600_000, wallMS: 86_400_000)
    // Then
    try expect(rig.tokens.lifeLeftMS(row, rig.now), equals: 3_000_000)
  }

  /// Other tokens are measured in server time.
  @Test(arguments: ["another process stored a newer one", "another boot", "forgotten", "never"])
  func anyOtherTokenIsMeasuredInServerTime(_ cause: String) throws {
    // Given a server's clock that is 5 s ahead
    let rig = try Rig()
    try rig.core.meta.set(.clockOffset, .int(5000))
    let row = row(expiresMS: rig.now.wallMS + 60_000)
    if cause != "never" {
      rig.tokens.replace(expiresMS: row.expiresMS, lifetimeMS: 1, rig.now)
    }
    var at = rig.now
    switch cause {
    case "another boot": at.bootID = "another"
    case "forgotten": rig.tokens.forgetEnd()
    case "another process stored a newer one": row.expiresMS += 1
    default: break
    }
    // When, then
    try expect(rig.tokens.lifeLeftMS(row, at), equals: row.expiresMS - rig.now.wallMS - 5000)
  }

  @Test func theMarginCountsAsExpired() throws {
    let rig = try Rig()
    let row = row(expiresMS: rig.now.wallMS + 1000)
    try expect(!rig.tokens.isExpired(row, rig.now))
    try expect(!rig.tokens.isExpired(row, rig.now, marginMS: 999))
    try expect(rig.tokens.isExpired(row, rig.now, marginMS: 1000))
    rig.advance(1000)
    try expect(rig.tokens.isExpired(row, rig.now))
  }

  @Test func aNewTokenEndsTheRefusalAndTheValidation() throws {
    let rig = try Rig()
    rig.tokens.refuse()
    rig.tokens.requireValidation()
    rig.tokens.replace(expiresMS: 1, lifetimeMS: 1, rig.now)
    expect(!rig.tokens.isRefused)
    expect(!rig.tokens.needsValidation)
  }

  @Test func aConfirmationEndsTheValidationAlone() throws {
    let rig = try Rig()
    rig.tokens.refuse()
    rig.tokens.requireValidation()
    rig.tokens.confirm(rig.now)
    expect(rig.tokens.isRefused)
    expect(!rig.tokens.needsValidation)
  }

  /// After a refused token: the next refused one, the time between them, and whether tokens are refused again and again.
  @Test(
    arguments: [
      ([1], Int64(0), false), ([2], 59_999, true), ([2], 60_000, false), ([1], 59_999, false),
    ] as [([UInt8], Int64, Bool)])
  func twoDifferentTokensRefusedShortlyAfterEachOtherAreARepetition(
    token: [UInt8], passed: Int64, isRepeated: Bool
  ) throws {
    let rig = try Rig()
    expect(!rig.tokens.refuse([1], rig.now))
    expect(rig.tokens.isRefused)
    rig.advance(passed)
    expect(rig.tokens.refuse(token, rig.now), equals: isRepeated)
  }

  @Test func aTokenRefusedLikeTheOneBeforeIsKeptForAWhile() throws {
    // Given
    let rig = try Rig()
    _ = rig.tokens.refuse([1], rig.now)
    rig.tokens.forgetRefusal()
    expect(rig.tokens.refuse([2], rig.now))
    // When requests of other purposes are refused too, then none fetches another one
    expect(rig.tokens.refuse([2], rig.now))
    expect(!rig.tokens.isRefused)
    rig.advance(60_000)
    expect(!rig.tokens.refuse([2], rig.now))
    expect(rig.tokens.isRefused)
  }

  @Test func theSameTokenAfterARefreshIsAnotherOne() throws {
    let rig = try Rig()
    _ = rig.tokens.refuse([1], rig.now)
    rig.tokens.replace(expiresMS: 1, lifetimeMS: 1, rig.now)
    expect(rig.tokens.refuse([1], rig.now))
    expect(!rig.tokens.isRefused)
  }

  @Test func aTokenIsKeptForAWhileFromItsOwnRefusalOn() throws {
    // Given a token that was refused nearly a minute after the one before it
    let rig = try Rig()
    _ = rig.tokens.refuse([1], rig.now)
    rig.tokens.forgetRefusal()
    rig.advance(59_000)
    expect(rig.tokens.refuse([2], rig.now))
    // When it is refused again, shortly and at the end of its own minute
    rig.advance(30_000)
    expect(rig.tokens.refuse([2], rig.now))
    expect(!rig.tokens.isRefused)
    rig.advance(30_000)
    expect(!rig.tokens.refuse([2], rig.now))
  }

  @Test func theSameTokenDoesNotProlongThePeriod() throws {
    let rig = try Rig()
    _ = rig.tokens.refuse([1], rig.now)
    rig.advance(59_000)
    _ = rig.tokens.refuse([1], rig.now)
    rig.advance(1000)
    expect(!rig.tokens.refuse([2], rig.now))
  }
}
