import Base
import Policy
import Store
import Supabase
import Vault

/// Services that back off independently. The raw values are stored.
enum Service: String, CaseIterable {
  case auth, rest
  /// Reads. Their failures must not delay uploads.
  case pull
}

/// Back-off of each service, shared by all processes through the `backoff` table.
///
/// A pause is stored as a time of the device's clock. The process in which it began measures it by
/// the monotonic clock instead, so that moving the device's clock back does not silence a service
/// for hours.
final class ServicePauses {
  /// A pause that began in this process.
  private struct Pause {
    let service: Service
    /// The stored end; another process may have replaced it since.
    let notBeforeMS: Int64
    /// The end by the monotonic clock.
    let endsMS: Int64
  }

  private let core: Core
  private var pauses: [Pause] = [] { didSet { core.revision.advance() } }

  init(_ core: Core) { self.core = core }

  private func state(of service: Service) throws(Failure) -> ServiceBackoff {
    let stored = try core.backoffs.read(service.rawValue)
    return ServiceBackoff(attempts: stored.attempts, notBeforeMS: stored.notBeforeMS)
  }

  /// Whether one request at a time finds out if the service is back.
  func isProbing(_ service: Service) throws(Failure) -> Bool {
    try state(of: service).isProbing
  }

  /// A request failed: pause with full jitter, at least as long as `Retry-After` asks.
  func backOff(_ service: Service, _ response: HTTPResponse, _ now: Instant) throws(Failure) {
    var state = try state(of: service)
    let delay = state.fail(
      at: now.wallMS, random: Random.word(), floorMS: response.retryAfterMS ?? 0)
    try core.backoffs.set(
      service.rawValue, attempts: state.attempts, notBeforeMS: state.notBeforeMS)
    pauses.removeAll { $0.service == service }
    pauses.append(
      Pause(service: service, notBeforeMS: state.notBeforeMS, endsMS: now.monotonicMS + delay))
  }

  /// The service answered.
  func succeed(_ service: Service) throws(Failure) {
    var state = try state(of: service)
    guard state.isProbing else { return }
    state.succeed(pauseLeftMS: try leftMS(service, core.clock.now()))
    if !state.isProbing { try core.backoffs.clear(service.rawValue) }
  }

  /// End the pause of a service.
  func clear(_ service: Service) throws(Failure) { try core.backoffs.clear(service.rawValue) }

  /// How long the pause still lasts; 0 or less when there is none.
  func leftMS(_ service: Service, _ now: Instant) throws(Failure) -> Int64 {
    let notBefore = try notBeforeMS(service)
    if let pause = pauses.first(where: { $0.service == service && $0.notBeforeMS == notBefore }) {
      return pause.endsMS - now.monotonicMS
    }
    let left = notBefore - now.wallMS
    // Longer than any delay we set: stored under another clock; ignore it.
    return left > Backoff.maxDelayMS ? 0 : left
  }

  /// The stored end of the pause, by the device's clock; 0 when there is none.
  func notBeforeMS(_ service: Service) throws(Failure) -> Int64 {
    try core.backoffs.read(service.rawValue).notBeforeMS
  }
}
