import Base
import Policy
import Store
import Supabase
import Vault

/// What a failed read means: reads of its purpose back off, and nothing else waits.
final class ReadFailures: Part {
  private let refresh: Refresh

  init(_ shared: Shared, _ refresh: Refresh) {
    self.refresh = refresh
    super.init(shared)
  }

  /// The read failed; the cache stays unchanged.
  func fail(
    _ purpose: Purpose, _ outcome: RestOutcome, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    if outcome == .needsToken { return try refresh.refuseToken(purpose, response, now) }
    reachability.noteFailure()
    try pauses.backOff(purpose, response, now)
  }

  /// Process a response. If the cache cannot be written, only reads pause; the data is read again
  /// later.
  func tolerateStorage(
    _ purpose: Purpose, _ response: HTTPResponse, _ now: Instant,
    _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    do throws(Failure) { try body() } catch
      where error.code.retryable && !core.reads.mustRunAgain
    {
      Log.line(.warning, "what was read could not be stored: \(error.code.rawValue)")
      reachability.noteFailure()
      try pauses.backOff(purpose, response, now)
    }
  }
}
