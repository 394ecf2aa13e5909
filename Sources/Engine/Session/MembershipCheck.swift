import Base
import Policy
import Supabase

/// The state of the membership check in this process: whether the server must be asked for the
/// user's memberships, and what is known of its response.
final class MembershipCheck {
  private let core: Core
  private let reachability: Reachability
  private let hostView: HostView
  /// A request must be sent, or is in flight.
  private(set) var isNeeded = false
  /// When the host began to wait for the response, by the monotonic clock.
  private(set) var sinceMS: Int64 = 0
  /// The server has responded in this process.
  private var hasAnswer = false
  /// The last request failed; the next one follows after the back-off.
  private(set) var hasFailed = false
  /// What the pages so far have brought; the next request continues it.
  private(set) var read = MembershipRead()

  init(_ core: Core, _ reachability: Reachability, _ hostView: HostView) {
    self.core = core
    self.reachability = reachability
    self.hostView = hostView
  }

  /// An app without organisations has nothing to ask for, so nothing is open.
  private var isUsed: Bool { core.configuration.backend.hasOrganisations }

  var isConfirmed: Bool { hasAnswer || !isUsed }
  /// A request must be sent or is in flight, and no earlier response counts meanwhile.
  var isPending: Bool { isNeeded && !hasAnswer }

  /// What happens to the earlier response.
  enum Request {
    /// The earlier response counts until the new one arrives. A running time-out continues.
    case keepingAnswer
    /// The earlier response no longer counts, and the time-out starts again.
    case discardingAnswer
  }

  /// Ask the server for the memberships.
  func ask(_ request: Request, _ now: Instant) {
    if request == .discardingAnswer || !isNeeded { sinceMS = now.monotonicMS }
    begin(request)
  }

  /// Ask, but keep the start if the host was told a deadline.
  func askSilently(_ request: Request, _ now: Instant) {
    if hostView.wasToldDeadline { begin(request) } else { ask(request, now) }
  }

  private func begin(_ request: Request) {
    guard isUsed else { return }
    if request == .discardingAnswer { hasAnswer = false }
    isNeeded = true
    hasFailed = false
    read = MembershipRead()
  }

  /// A page came that is not the last one.
  func goOn(_ read: MembershipRead) { self.read = read }

  /// The server responded.
  func confirm() {
    reset()
    hasAnswer = true
  }

  /// The server did not respond with a list.
  func fail() {
    hasFailed = true
    read = MembershipRead()
  }

  /// Forget the request and the response. The start stays, because a waiting host was told a
  /// deadline.
  func reset() {
    isNeeded = false
    hasAnswer = false
    hasFailed = false
    read = MembershipRead()
  }

  // MARK: Time

  /// How long the host still waits before the cached memberships are used.
  func timeoutLeftMS(_ now: Instant) -> Int64 {
    sinceMS + core.configuration.limits.guardTimeoutMS - now.monotonicMS
  }

  /// How long ago the host began to wait.
  func ageMS(_ now: Instant) -> Int64 { now.monotonicMS - sinceMS }

  func freshness(_ now: Instant) -> Situation.Freshness {
    if isConfirmed { return .confirmed }
    guard isNeeded else { return .cached }
    return reachability.isOnline && !hasFailed && timeoutLeftMS(now) > 0 ? .pending : .unreachable
  }
}
