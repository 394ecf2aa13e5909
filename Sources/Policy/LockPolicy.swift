/// Decides when the session is locked, what opens it, and what is shown until then: so, when the biometric prompt is asked
/// for (the screen `unlock`), and when it is offered beside the sign-in (`passesByItself`).
///
/// A lock is due (`cause`) when the user locked, the app was away for longer than `background_timeout_s`, the clock moved
/// back by more than a minute, the last sign-in is older than `session_window_s`, the access token is expired at a start,
/// or the session's key is gone. `Assessment` measures all that; clock and window only at a start, a return or an unlock.
/// While a sign-in is under way, `wait` is shown instead (`Decider.receive`).
enum LockPolicy {
  /// Why a lock is due; nil when none is. The first cause that applies becomes the reason.
  static func cause(_ s: Situation) -> MessageCode? {
    if s.lockedByUser { return .userLocked }
    if s.absence == .long { return .backgroundTimeout }
    if s.clock == .movedBack && s.presence == .available { return .clockMovedBack }
    if s.window == .outside { return .sessionWindow }
    if expiryLocks(s) { return .tokenExpired }
    // The session's key is gone: usually a lock has erased it, in this process or in one that ended.
    if s.record == .sealed { return s.token == .expired ? .tokenExpired : .userLocked }
    return nil
  }

  /// An expired access token locks the session only at a cold start (RES-2). In a running process it is refreshed
  /// silently; so it is at a cold start where no biometric prompt is possible, unless one is required.
  private static func expiryLocks(_ s: Situation) -> Bool {
    guard s.token == .expired && s.occasion == .resume else { return false }
    switch s.presence {
    case .available, .requiredButMissing: return true
    case .unenrolled, .off: return false
    }
  }

  /// Whether the prompt has opened the session: the key store released the biometric key, and a
  /// wrap exists that it opens. The host's report alone opens nothing (SES-10).
  static func opens(_ s: Situation) -> Bool {
    s.occasion == .unlock && s.outcome == .success && s.presence == .available
  }

  /// The screen of a session that is locked because of `cause`.
  ///
  /// The session key is erased only where the biometric key can open the session again. Without
  /// such a key, erasing it would destroy the session; then the lock only leads to the
  /// sign-in screen.
  static func locked(_ s: Situation, because cause: MessageCode) -> Decision {
    let lock = s.record == .open && s.presence == .available
    if let reason = failure(s) {
      return Decision(.signIn, reason, lock: lock, canUnlock: passesByItself(s))
    }
    if let reason = impossible(s) { return Decision(.signIn, reason, lock: lock) }
    if s.occasion == .unlock && s.outcome == .withheld {
      return Decision(.unlock, .biometricWithheld, lock: lock)
    }
    return Decision(.unlock, cause, lock: lock)
  }

  /// Why the prompt failed, if that leads to the sign-in screen (RES-6). Each cause has its own
  /// reason.
  private static func failure(_ s: Situation) -> MessageCode? {
    guard s.occasion == .unlock else { return nil }
    switch s.outcome {
    case .failed: return .biometricFailed
    case .cancelled: return .biometricCancelled
    case .lockout: return .biometricLockout
    case .lockoutPermanent: return .biometricLockoutPermanent
    case .notEnrolled: return .biometricNotEnrolled
    case .unavailable: return .biometricUnavailable
    case .invalidated: return .keyLost
    case .none, .success, .withheld: return nil
    }
  }

  /// Whether another prompt may open the session after a failed one: the key is still there, and the
  /// cause needs nothing that the user does outside the app.
  private static func passesByItself(_ s: Situation) -> Bool {
    guard s.presence == .available else { return false }
    switch s.outcome {
    case .failed, .cancelled, .lockout, .unavailable: return true
    case .none, .success, .withheld, .lockoutPermanent, .notEnrolled, .invalidated: return false
    }
  }

  /// Why no prompt can open the session; nil when one can. A sealed session without a biometric
  /// wrap has lost its only key (SES-9), unless the user had it erased, by a lock.
  private static func impossible(_ s: Situation) -> MessageCode? {
    switch s.presence {
    case .available: nil
    case _ where s.record == .sealed && !s.lockedByUser: .keyLost
    case .unenrolled, .requiredButMissing: .biometricNotEnrolled
    case .off: .biometricOff
    }
  }
}
