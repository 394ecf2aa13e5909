import Base

/// The screens that a decision can name. The host draws them.
public enum Screen: String, CaseIterable, Sendable {
  case home
  case unlock
  case signIn = "sign_in"
  case selectOrg = "select_org"
  case wait
}

/// What the host shows, and what the engine does.
public struct Decision: Equatable, Sendable {
  public var screen: Screen
  /// Why this screen, for its user; nil: it needs no explanation.
  public var message: MessageCode?
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
    _ screen: Screen, _ message: MessageCode? = nil, cause: SignInCause? = nil, lock: Bool = false,
    forget: Bool = false, chooseOnly: Bool = false, canUnlock: Bool = false, stale: Bool = false,
    offline: Bool = false
  ) {
    self.screen = screen
    self.message = message
    self.cause = cause
    self.lock = lock
    self.forget = forget
    self.chooseOnly = chooseOnly
    self.canUnlock = canUnlock
    self.stale = stale
    self.offline = offline
  }
}
