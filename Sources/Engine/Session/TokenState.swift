import Base
import Policy
import Store

/// What this process knows of the access token beyond the session row.
final class TokenState {
  /// Two refusals within this time: refreshing does not help. A confirmation counts as long.
  private static var refusalPeriodMS: Int64 { 60_000 }

  private let core: Core
  /// The server has not confirmed this session since the process started or came back online.
  private(set) var needsValidation = false
  /// When the server last confirmed or issued the token, by the monotonic clock.
  private var confirmedMS: Int64?
  /// The server refused the access token: refresh, whatever the clock says.
  private(set) var isRefused = false
  /// When the access token with this expiry ends by the monotonic clock, if this process received it.
  private var end: (expiresMS: Int64, monotonicMS: Int64, bootID: String)?
  /// The last refused access token: its digest, when, and whether another one had been refused shortly before.
  private var refusal: (token: [UInt8], monotonicMS: Int64, isRepeated: Bool)?

  init(_ core: Core) { self.core = core }

  func requireValidation() { needsValidation = true }

  func confirm(_ now: Instant) {
    needsValidation = false
    confirmedMS = now.monotonicMS
  }

  /// Whether the server has confirmed the token within the last minute.
  func isConfirmed(_ now: Instant) -> Bool {
    confirmedMS.map { now.monotonicMS - $0 <= TokenState.refusalPeriodMS } ?? false
  }

  /// A new access token was stored.
  func replace(expiresMS: Int64, lifetimeMS: Int64, _ now: Instant) {
    end = (expiresMS, now.monotonicMS + lifetimeMS, now.bootID)
    isRefused = false
    // The server may issue the same one within a second.
    refusal?.token = []
    confirm(now)
  }

  func refuse() { isRefused = true }

  /// The server refused the access token with this digest. Returns true when it refused another one shortly before:
  /// then fetching tokens does not help, and this one is kept for a while.
  func refuse(_ token: [UInt8], _ now: Instant) -> Bool {
    if let last = refusal, now.monotonicMS - last.monotonicMS < TokenState.refusalPeriodMS {
      if last.token != token {
        refusal = (token, now.monotonicMS, true)
        return true
      }
      if last.isRepeated { return true }
    } else {
      refusal = (token, now.monotonicMS, false)
    }
    isRefused = true
    return false
  }

  /// The mirror of the session row is dropped, and the refused token with it.
  func forgetRefusal() { isRefused = false }

  func forgetEnd() { end = nil }

  // MARK: Life time

  /// How long the access token is still valid: by the monotonic clock if this process received it,
  /// else in server time. (Another process may have stored a newer token; its expiry differs.)
  func lifeLeftMS(_ row: SessionRow, _ now: Instant) throws(Failure) -> Int64 {
    if let end, end.expiresMS == row.expiresMS, end.bootID == now.bootID {
      return end.monotonicMS - now.monotonicMS
    }
    return row.expiresMS - (try core.serverMS(now))
  }

  func isExpired(
    _ row: SessionRow, _ now: Instant, marginMS: Int64 = 0
  ) throws(Failure) -> Bool {
    try lifeLeftMS(row, now) <= marginMS
  }

  func refreshMarginMS(_ session: OpenSession) -> Int64 {
    RefreshPolicy.marginMS(
      configuredMS: core.configuration.limits.refreshMarginMS, lifetimeMS: session.lifetimeMS)
  }
}
