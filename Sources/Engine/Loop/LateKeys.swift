import Base
import Policy
import Vault

/// Takes the answers of a host that serves its key store through `poll`, and goes on with everything
/// that waited for them.
final class LateKeys {
  private let core: Core
  private let sessions: SessionStore
  private let lock: Lock
  private let recovery: Recovery
  private let sessionStart: SessionStart
  private let presence: Presence
  private let dispatch: Dispatch
  private let inFlight: InFlight
  private let hostView: HostView
  private let decider: Decider

  init(
    _ core: Core, _ sessions: SessionStore, lock: Lock, recovery: Recovery,
    sessionStart: SessionStart,
    presence: Presence, dispatch: Dispatch, inFlight: InFlight, hostView: HostView,
    decider: Decider
  ) {
    self.core = core
    self.sessions = sessions
    self.lock = lock
    self.recovery = recovery
    self.sessionStart = sessionStart
    self.presence = presence
    self.dispatch = dispatch
    self.inFlight = inFlight
    self.hostView = hostView
    self.decider = decider
  }

  /// What the host says about an operation.
  enum Result: String, CaseIterable {
    case ok
    case notFound = "not_found"
    case locked, cancelled, failed, lockout
    case lockoutPermanent = "lockout_permanent"
    case notEnrolled = "not_enrolled"
    case invalidated, unavailable

    var refusal: KeyRefusal? {
      switch self {
      case .ok: nil
      case .notFound: .notFound
      case .locked: .locked
      case .cancelled: .cancelled
      case .failed: .failed
      case .lockout: .lockout
      case .lockoutPermanent: .lockoutPermanent
      case .notEnrolled: .notEnrolled
      case .invalidated: .invalidated
      case .unavailable: .unavailable
      }
    }
  }

  /// Take an answer; returns false when nothing waits for it.
  func take(_ request: JSON) throws(Failure) -> Bool {
    let fields = try Fields(request, known: ["id", "result", "value"])
    let id = try fields.integer("id", in: 0...Fields.safe.upperBound)
    let result = try fields.choice("result", Result.self)
    guard let requested = core.keyRing.requested else {
      throw Failure(
        .configNotConfigured, "the handle was not opened with {\"keystore\":{\"kind\":\"host\"}}")
    }
    guard requested.finds(id) else {
      Log.line(.warning, "key_complete: no key request \(id) waits for an answer")
      return false
    }
    var answer = result.refusal.map { RequestedKeys.Answer.refused($0) } ?? .done
    if result == .ok, requested.loads(id) {
      guard let bytes = try Key.bytes(base64: try fields.text("value", maximum: 4096)) else {
        throw fields.invalid("value", "base64 is expected")
      }
      guard let key = Key(bytes) else {
        throw fields.invalid("value", "a key of 32 bytes is expected")
      }
      answer = .key(key)
    } else if fields.optional("value") != nil {
      throw fields.invalid("value", "only a load that found a key has a value")
    }
    requested.take(answer, to: id)
    return true
  }

  /// Go on with what waited, as far as the answers allow.
  func goOn(_ now: Instant) throws(Failure) {
    guard let requested = core.keyRing.requested else { return }
    requested.expire()
    let waits =
      inFlight.keepsResponse || sessions.startWaits || hostView.awaitsKey
      || hostView.lateOccasion != nil || core.keyTurn.isAwaited
    if requested.hasNews || waits {
      try sessions.confirmVault()
      try sessions.keys.eraseOwed()
      _ = try decider.assess(.navigate)
      try dispatch.finishKept(now)
      try sessionStart.goOn(decider)
      do throws(Failure) { try recovery.goOn() } catch {
        // The host calls again.
        guard error.code.status == .keyStore else { throw error }
      }
      do throws(Failure) { try sessions.keepUsable() } catch {
        // The next answer, or the next call, tries again.
        guard error.code.status == .keyStore else { throw error }
      }
      try presence.goOn()
      lock.goOn()
      try decider.emitIfChanged()
      try presence.finishArrival()
    }
    try core.endKeyTurn()
  }

  /// Add to the reply of a poll what the host is asked for, and what no longer.
  func takeOutbox(_ reply: JSON) throws(Failure) {
    guard let requested = core.keyRing.requested else { return }
    reply.set("key_requests", try requested.takeOutbox(prompt: core.text(.unlockPrompt)))
    reply.set("key_cancelled", requested.takeWithdrawn())
  }
}
