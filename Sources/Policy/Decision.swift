import Base

/// The screens that a decision can name. The host draws them.
public enum Screen: String, CaseIterable, Sendable {
  case home
  case unlock
  case signIn = "sign_in"
  case selectOrg = "select_org"
  case wait
}

/// Why a decision names its screen. The raw values are the stable codes of the C API.
public enum Reason: String, CaseIterable, Sendable {
  case active
  case sessionMissing = "session_missing"
  case sessionCorrupt = "session_corrupt"
  case tokenExpired = "token_expired"
  case sessionWindow = "session_window"
  case backgroundTimeout = "background_timeout"
  case clockMovedBack = "clock_moved_back"
  case sessionEnded = "session_ended"
  case offlineLimit = "offline_limit"
  case signedOut = "signed_out"
  case keyLost = "key_lost"
  case keystoreLocked = "keystore_locked"
  case keystoreFailed = "keystore_failed"
  case biometricFailed = "biometric_failed"
  case biometricCancelled = "biometric_cancelled"
  case biometricLockout = "biometric_lockout"
  case biometricLockoutPermanent = "biometric_lockout_permanent"
  case biometricNotEnrolled = "biometric_not_enrolled"
  case biometricUnavailable = "biometric_unavailable"
  case biometricWithheld = "biometric_withheld"
  case biometricOff = "biometric_off"
  case userLocked = "user_locked"
  case unlocked
  case firstChoice = "first_choice"
  case chosen
  case switched
  case noMembership = "no_membership"
  case membershipRevoked = "membership_revoked"
  case orgDisabled = "org_disabled"
  case roleUnknown = "role_unknown"
  case guardPending = "guard_pending"
  case signingIn = "signing_in"
  case signInFailed = "sign_in_failed"
  case signInExpired = "sign_in_expired"
  case signInCancelled = "sign_in_cancelled"
  case signInOffline = "sign_in_offline"
  case signInUnreachable = "sign_in_unreachable"
  case signInForeign = "sign_in_foreign"
  case routeForbidden = "route_forbidden"
  case serverUnreachable = "server_unreachable"

  public init?(rawValue: String) { self.init(listed: rawValue) }

  /// Whether it says why a sign-in ended without a session.
  public var endsSignIn: Bool {
    switch self {
    case .signInFailed, .signInExpired, .signInCancelled, .signInOffline, .signInUnreachable,
      .signInForeign:
      true
    default: false
    }
  }
}

/// What the host shows, and what the engine does.
public struct Decision: Equatable, Sendable {
  public var screen: Screen
  public var reason: Reason
  /// Why the sign-in failed, or, with `signingIn`, why it is tried again.
  public var cause: SignInCause?
  /// Erase the session key now. Afterwards only the biometric key opens the session.
  public var lock: Bool
  /// Clear the damaged session record. The queue stays.
  public var forget: Bool
  /// Choose the only usable membership for the user.
  public var chooseOnly: Bool
  /// Offer the biometric prompt beside the methods of the sign-in: another one may open the session.
  public var canUnlock: Bool
  /// Show the banner `stale_data`.
  public var stale: Bool
  /// Show the banner `offline`.
  public var offline: Bool

  public init(
    _ screen: Screen, _ reason: Reason, cause: SignInCause? = nil, lock: Bool = false,
    forget: Bool = false, chooseOnly: Bool = false, canUnlock: Bool = false, stale: Bool = false,
    offline: Bool = false
  ) {
    self.screen = screen
    self.reason = reason
    self.cause = cause
    self.lock = lock
    self.forget = forget
    self.chooseOnly = chooseOnly
    self.canUnlock = canUnlock
    self.stale = stale
    self.offline = offline
  }
}
