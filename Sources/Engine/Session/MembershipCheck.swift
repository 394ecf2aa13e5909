import Base
import Policy

/// The membership check of this process: whether the server is to be asked which organisations the
/// user may enter, and what is known of its answer.
final class MembershipCheck {
  private let core: Core
  private let reachability: Reachability
  private let hostView: HostView
  private var state = State() { didSet { core.revision.advance() } }

  private struct State {
    /// The server is to be asked, or is being asked.
    var isNeeded = false
    /// Since when the host waits for the answer, by the monotonic clock.
    var sinceMS: Int64 = 0
    /// The server answered in this process.
    var isConfirmed = false
    /// The last try failed; the next one follows by back-off.
    var hasFailed = false
  }

  init(_ core: Core, _ reachability: Reachability, _ hostView: HostView) {
    self.core = core
    self.reachability = reachability
    self.hostView = hostView
  }

  var isNeeded: Bool { state.isNeeded }
  var isConfirmed: Bool { state.isConfirmed }
  var hasFailed: Bool { state.hasFailed }

  /// How a check changes what is known already.
  enum Request {
    /// The cached answer counts until the new one arrives. The time-out goes on when one is running.
    case keepingAnswer
    /// The earlier answer no longer counts, and the time-out starts anew.
    case discardingAnswer
  }

  /// Ask the server for the memberships.
  func ask(_ request: Request, _ now: Instant) {
    if request == .discardingAnswer || !state.isNeeded { state.sinceMS = now.monotonicMS }
    begin(request)
  }

  /// The same without a decision that tells the host a new deadline: a host that was told one keeps
  /// it.
  func askSilently(_ request: Request, _ now: Instant) {
    if hostView.wasToldDeadline { begin(request) } else { ask(request, now) }
  }

  private func begin(_ request: Request) {
    if request == .discardingAnswer { state.isConfirmed = false }
    state.isNeeded = true
    state.hasFailed = false
  }

  /// The server answered.
  func confirm() {
    state.isNeeded = false
    state.isConfirmed = true
    state.hasFailed = false
  }

  /// The server did not answer, or the request could not be made.
  func fail() { state.hasFailed = true }

  /// Forget what was asked and answered. The start stays: a host that waits was told a deadline.
  func reset() { state = State(sinceMS: state.sinceMS) }

  // MARK: Time

  /// How long the host still waits before the cached answer is used.
  func timeoutLeftMS(_ now: Instant) -> Int64 {
    state.sinceMS + core.configuration.limits.guardTimeoutMS - now.monotonicMS
  }

  /// How long ago the host began to wait.
  func ageMS(_ now: Instant) -> Int64 { now.monotonicMS - state.sinceMS }

  func freshness(_ now: Instant) -> Situation.Freshness {
    if state.isConfirmed { return .confirmed }
    guard state.isNeeded else { return .cached }
    guard reachability.isOnline, !state.hasFailed, timeoutLeftMS(now) > 0 else {
      return .unreachable
    }
    return .pending
  }
}
