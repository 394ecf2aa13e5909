import Base
import Policy
import Store
import Supabase
import Vault

/// The pauses of each purpose of a request, shared by all processes through the `pause` table.
///
/// Each purpose has its own failures, pause and probe: an endpoint that fails holds up nothing but
/// itself. In an outage of the whole service each purpose draws its own delays, so the requests of
/// many devices stay spread.
///
/// Only a response that is the service's own may ask for a long pause, because a captive portal sends
/// `Retry-After` too. What no server asked for ends when the network changes or the user asks; the
/// count of failures stays, so that the next pause is not shorter.
///
/// A pause that lasts is never shortened by a later failure: several requests may have been in flight.
/// `Backoff` says how long a pause is, `UploadPolicy.pausesAll` when uploads pause. A pause ends when its time is over; then
/// one item probes. What no server asked for also ends when the network comes back or the user asks, and not by an answer.
struct ServicePauses {
  let core: Core

  private func state(
    of stored: PauseTable.Entry, _ now: SteadyTime
  ) -> ServicePause {
    ServicePause(
      attempts: stored.attempts,
      notBeforeMS: stored.pause.lasts(at: now) ? stored.pause.until.ms : 0)
  }

  /// Whether the last request of this purpose failed: the next one finds out if the service is back.
  func isProbing(_ purpose: Purpose) throws(Failure) -> Bool {
    ServicePause(attempts: try core.pauses.read(purpose.rawValue).attempts).isProbing
  }

  /// A request failed: pause with full jitter, at least as long as the server asks.
  func backOff(
    _ purpose: Purpose, _ response: HTTPResponse, _ now: Instant
  ) throws(Failure) {
    let time = try core.steadyToStore(now)
    let stored = try core.pauses.read(purpose.rawValue)
    var state = state(of: stored, time)
    let goesOn = stored.isAsked && state.notBeforeMS > 0
    _ = state.fail(at: time.ms, random: Random.word(), floorMS: response.floorMS(for: purpose))
    try core.pauses.set(
      purpose.rawValue, attempts: state.attempts,
      Pause(since: time, until: SteadyTime(ms: state.notBeforeMS)),
      isAsked: goesOn || response.asksForPause(purpose))
  }

  /// The service answered. Returns whether that ends a pause.
  @discardableResult
  func succeed(_ purpose: Purpose) throws(Failure) -> Bool {
    let stored = try core.pauses.read(purpose.rawValue)
    guard stored.attempts > 0 else { return false }
    let time = try core.steady(core.clock.now())
    var state = state(of: stored, time)
    state.succeed(pauseLeftMS: stored.pause.leftMS(time))
    if !state.isProbing { try core.pauses.clear(purpose.rawValue) }
    return !state.isProbing
  }

  /// A request succeeded: pause this long before the next one, if nothing asks for a longer pause.
  func rest(_ purpose: Purpose, _ milliseconds: Int64, _ now: Instant) throws(Failure) {
    guard try leftMS(purpose, now) < milliseconds else { return }
    try core.pauses.set(
      purpose.rawValue, attempts: try core.pauses.read(purpose.rawValue).attempts,
      try core.pause(milliseconds, now))
  }

  /// A refresh succeeded after failures, so a whole service may have come back, for many devices at
  /// once. Reads are not urgent: they come later, spread over the time that the refreshes were.
  func spreadReads(_ now: Instant) throws(Failure) {
    let stored = try core.pauses.read(Purpose.refresh.rawValue)
    let refresh = ServicePause(attempts: stored.attempts)
    guard refresh.isProbing else { return }
    for purpose in [Purpose.pull, .summary] {
      let known = try core.pauses.read(purpose.rawValue)
      let delay = refresh.readDelayMS(random: Random.word(), isAsked: stored.isAsked)
      let left = known.pause.leftMS(try core.steady(now))
      guard delay > left else { continue }
      try core.pauses.set(
        purpose.rawValue, attempts: known.attempts, try core.pause(delay, now),
        isAsked: known.isAsked && left > 0)
    }
  }

  /// Another session begins: what the auth service said about the last one no longer counts.
  func clearAuth() throws(Failure) {
    for purpose in Purpose.allCases where purpose.isAuth {
      try core.pauses.clear(purpose.rawValue)
    }
  }

  /// End the pauses that no server asked for. The failures still count.
  func endUnasked(_ isIncluded: (Purpose) -> Bool) throws(Failure) {
    for entry in try core.pauses.all() where !entry.isAsked && entry.pause != .none {
      guard let purpose = Purpose(rawValue: entry.purpose), isIncluded(purpose) else { continue }
      try core.pauses.set(entry.purpose, attempts: entry.attempts, .none)
    }
  }

  /// How long the pause still lasts; 0 or less when there is none.
  func leftMS(_ purpose: Purpose, _ now: Instant) throws(Failure) -> Int64 {
    let pause = try core.pauses.read(purpose.rawValue).pause
    return pause == .none ? 0 : pause.leftMS(try core.steady(now))
  }

  /// A pause that lasts, as the host sees it.
  struct PauseEnd {
    /// `back_off` or `server_pause`.
    let code: MessageCode
    /// Its end by the device's clock.
    let untilMS: Int64
  }

  func pause(_ purpose: Purpose, _ now: Instant) throws(Failure) -> PauseEnd? {
    let left = try leftMS(purpose, now)
    guard left > 0 else { return nil }
    let isAsked = try core.pauses.read(purpose.rawValue).isAsked
    return PauseEnd(code: isAsked ? .serverPause : .backOff, untilMS: now.wallMS + left)
  }
}

/// What holds uploads back though the session is open.
struct UploadHold {
  /// `offline`, `token`: an access token has to be refreshed first; or the code of the pause of uploads.
  let code: MessageCode
  /// The pause of what is awaited: of the refresh, or of uploads. nil: the refresh is sent next.
  let pause: ServicePauses.PauseEnd?
  /// Of both pauses the one that ends last: nothing is uploaded before.
  let last: ServicePauses.PauseEnd?
}

extension Refresh {
  /// Whether uploads are held though the session may be used; nil: they are not. `sync_now`, `sync_status` and
  /// `queue_explain` tell it. `Scheduler` looks at network and token for all requests, and then at the pause alone.
  func uploadHold(_ now: Instant) throws(Failure) -> UploadHold? {
    let own = try pauses.pause(.upload, now)
    let isOnline = reachability.isOnline
    if let session = sessions.session, try isNeeded(session, try sessions.row(), now) {
      let token = try pauses.pause(.refresh, now)
      let isLast = own?.untilMS ?? .min > token?.untilMS ?? .min
      return UploadHold(
        code: isOnline ? .token : .offline, pause: token, last: isLast ? own : token)
    }
    if !isOnline { return UploadHold(code: .offline, pause: own, last: own) }
    return own.map { UploadHold(code: $0.code, pause: own, last: own) }
  }
}

extension HTTPResponse {
  /// Whether the service itself asks for a pause: a gateway or a captive portal may not.
  func asksForPause(_ purpose: Purpose) -> Bool {
    guard retryAfterMS != nil else { return false }
    return purpose.isAuth ? AuthClassification.isOwn(facts) : RestClassification.isOwn(facts)
  }

  /// Why items wait that the response makes pause.
  func wait(_ pause: Pause) -> WaitReason {
    asksForPause(.upload) ? .server(pause) : .time(pause)
  }

  /// Whether the response comes from the service, and not from a gateway or a captive portal: an error
  /// has one of the service's codes, and a success the form that the request asks for. Only such a
  /// response tells the server's time.
  func isOwn(_ purpose: Purpose) -> Bool {
    guard (200..<300).contains(status) else {
      return purpose.isAuth ? AuthClassification.isOwn(facts) : RestClassification.isOwn(facts)
    }
    switch purpose {
    case .refresh, .signIn, .revoke: return body?["access_token"] != nil
    case .validate: return body?.uuid("id") != nil
    case .membershipCheck, .upload, .pull, .live: return rows != nil
    // Figures may have any names.
    case .summary: return false
    }
  }

  /// The shortest pause that the response may impose.
  func floorMS(for purpose: Purpose) -> Int64 {
    guard let retryAfterMS else { return 0 }
    return asksForPause(purpose) ? retryAfterMS : min(retryAfterMS, Backoff.maxStepMS)
  }
}
