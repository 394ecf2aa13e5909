import Base
import Policy
import Supabase
import Vault

/// What a failed read means for the others: reads back off by themselves and hold up nothing else.
final class ReadFailures {
  private let refresh: Refresh
  private let pauses: ServicePauses
  private let reachability: Reachability

  init(_ refresh: Refresh, _ pauses: ServicePauses, _ reachability: Reachability) {
    self.refresh = refresh
    self.pauses = pauses
    self.reachability = reachability
  }

  /// Nothing could be read; the cache stays as it is.
  func fail(
    _ outcome: RestOutcome, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if outcome == .needsToken {
      try refresh.refuseToken(response, now)
    } else {
      reachability.noteFailure()
    }
    try pauses.backOff(.pull, response, now)
  }

  /// Process what was read. When the cache cannot be written, everything else goes on: the server has
  /// it all, and it is read again later.
  func tolerateStorage(
    _ response: HTTPResponse, _ now: Instant, _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    do throws(Failure) { try body() } catch  where error.code.retryable {
      Log.line(.warning, "what was read could not be stored: \(error.code.rawValue)")
      reachability.noteFailure()
      try pauses.backOff(.pull, response, now)
    }
  }
}
