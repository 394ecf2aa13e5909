import Base
import Policy
import Store
import Supabase
import Vault

/// Back-off of each purpose of a request, shared by all processes through the `backoff` table.
///
/// Each purpose has its own failures, pause and probe: an endpoint that fails holds up nothing but
/// itself. In an outage of the whole service each purpose draws its own delays, so the requests of
/// many devices stay spread.
///
/// Only a response that is the service's own may ask for a long pause, because a captive portal sends
/// `Retry-After` too. What no server asked for ends when the network changes or the user asks; the
/// count of failures stays, so that the next pause is not shorter.
///
/// A pause is stored as a time of the device's clock. The process in which it began measures it by
/// the monotonic clock instead, so that moving the device's clock back does not silence a purpose
/// for hours.
final class ServicePauses {
  /// A pause that began in this process.
  private struct Pause {
    let purpose: Purpose
    /// The stored end; another process may have replaced it since.
    let notBeforeMS: Int64
    /// The end by the monotonic clock.
    let endsMS: Int64
  }

  private let core: Core
  private var pauses: [Pause] = [] { didSet { core.revision.advance() } }

  init(_ core: Core) { self.core = core }

  private func state(of purpose: Purpose) throws(Failure) -> ServiceBackoff {
    let stored = try core.backoffs.read(purpose.rawValue)
    return ServiceBackoff(attempts: stored.attempts, notBeforeMS: stored.notBeforeMS)
  }

  /// Whether the last request of this purpose failed: the next one finds out if the service is back.
  func isProbing(_ purpose: Purpose) throws(Failure) -> Bool {
    try state(of: purpose).isProbing
  }

  /// A request failed: pause with full jitter, at least as long as the server asks.
  func backOff(
    _ purpose: Purpose, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    var state = try state(of: purpose)
    let delay = state.fail(
      at: now.wallMS, random: Random.word(), floorMS: response.floorMS(for: purpose))
    try core.backoffs.set(
      purpose.rawValue, attempts: state.attempts, notBeforeMS: state.notBeforeMS,
      isAsked: response.asksForPause(purpose))
    pauses.removeAll { $0.purpose == purpose }
    pauses.append(
      Pause(purpose: purpose, notBeforeMS: state.notBeforeMS, endsMS: now.monotonicMS + delay))
  }

  /// The service answered.
  func succeed(_ purpose: Purpose) throws(Failure) {
    var state = try state(of: purpose)
    guard state.isProbing else { return }
    state.succeed(pauseLeftMS: try leftMS(purpose, core.clock.now()))
    if !state.isProbing { try core.backoffs.clear(purpose.rawValue) }
  }

  /// A refresh succeeded after failures, so a whole service may have come back, for many devices at
  /// once. Reads are not urgent: they come later, spread over the time that the refreshes were.
  func spreadReads(_ now: Instant) throws(Failure) {
    let refresh = try state(of: .refresh)
    guard refresh.isProbing else { return }
    let isAsked = try core.backoffs.read(Purpose.refresh.rawValue).isAsked
    for purpose in [Purpose.pull, .summary] {
      let known = try core.backoffs.read(purpose.rawValue)
      let until = now.wallMS + refresh.readDelayMS(random: Random.word(), isAsked: isAsked)
      guard until > known.notBeforeMS else { continue }
      try core.backoffs.set(
        purpose.rawValue, attempts: known.attempts, notBeforeMS: until, isAsked: known.isAsked)
    }
  }

  /// Another session begins: what the auth service said about the last one no longer counts.
  func clearAuth() throws(Failure) {
    for purpose in Purpose.allCases where purpose.isAuth {
      try core.backoffs.clear(purpose.rawValue)
    }
  }

  /// End the pauses that no server asked for. The failures still count.
  func endUnasked(_ isIncluded: (Purpose) -> Bool) throws(Failure) {
    for entry in try core.backoffs.all() where !entry.isAsked && entry.notBeforeMS > 0 {
      guard let purpose = Purpose(rawValue: entry.purpose), isIncluded(purpose) else { continue }
      try core.backoffs.set(entry.purpose, attempts: entry.attempts, notBeforeMS: 0)
    }
  }

  /// How long the pause still lasts; 0 or less when there is none.
  func leftMS(_ purpose: Purpose, _ now: Instant) throws(Failure) -> Int64 {
    let notBefore = try notBeforeMS(purpose)
    if notBefore == 0 { return 0 }
    if let pause = pauses.first(where: { $0.purpose == purpose && $0.notBeforeMS == notBefore }) {
      return pause.endsMS - now.monotonicMS
    }
    let left = notBefore - now.wallMS
    // Longer than any delay we set: stored under another clock; ignore it.
    return left > Backoff.maxDelayMS ? 0 : left
  }

  /// The stored end of the pause, by the device's clock; 0 when there is none.
  func notBeforeMS(_ purpose: Purpose) throws(Failure) -> Int64 {
    try core.backoffs.read(purpose.rawValue).notBeforeMS
  }
}

extension HTTPResponse {
  /// Whether the service itself asks for a pause: a gateway or a captive portal may not.
  func asksForPause(_ purpose: Purpose) -> Bool {
    guard retryAfterMS != nil else { return false }
    return purpose.isAuth ? AuthClassification.isOwn(facts) : RestClassification.isOwn(facts)
  }

  /// The shortest pause that the response may impose.
  func floorMS(for purpose: Purpose) -> Int64 {
    guard let retryAfterMS else { return 0 }
    return asksForPause(purpose) ? retryAfterMS : min(retryAfterMS, Backoff.maxStepMS)
  }
}
