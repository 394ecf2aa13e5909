/// One case of everything that a decision about the session depends on.
///
/// Every axis is a closed list, so that the whole product can be tested. Measuring (which clock,
/// which row, which key) is the engine's work; judging is this module's.
public struct Situation: Equatable, Sendable {
  /// What asks for a decision.
  public enum Occasion: CaseIterable, Sendable {
    /// The process starts: `holdfast_session_resume`.
    case resume
    /// The app is back on the screen.
    case foreground
    /// The biometric prompt has ended, see `Outcome`.
    case unlock
    /// A screen is about to open, or a server has answered.
    case navigate
  }

  /// What the key store says of the device key.
  public enum Keys: CaseIterable, Sendable {
    case ready
    /// The device was not unlocked since it started.
    case locked
    /// The store did not answer.
    case failed
    /// The store works and holds no key, although there are files sealed with one.
    case lost
  }

  /// The stored session.
  public enum Record: CaseIterable, Sendable {
    case missing
    /// It is there, the key is there, and it does not open.
    case corrupt
    /// The server has proved its end (the closed list of `EndReason`).
    case ended
    /// The device wrap is erased: only the biometric key opens it.
    case sealed
    /// Readable with the device key.
    case open
  }

  /// The device's clock against what was seen of it before.
  public enum Clock: CaseIterable, Sendable {
    case steady, movedBack
  }

  /// The access token, in server time.
  public enum Token: CaseIterable, Sendable {
    case valid, expired
  }

  /// The time since the session was last proved.
  public enum Window: CaseIterable, Sendable {
    /// Within `session_window_s`.
    case inside
    /// Beyond `session_window_s`.
    case outside
    /// Beyond `offline_limit_s`, the absolute limit.
    case pastLimit
  }

  /// The time in the background, counted from `holdfast_session_background` alone: an app that was
  /// closed without it was not away.
  public enum Absence: CaseIterable, Sendable {
    case brief
    /// Longer than `background_timeout_s`.
    case long
  }

  /// What the host says of the network.
  public enum Network: CaseIterable, Sendable {
    case online, offline
  }

  /// Whether the user's presence can open the session.
  public enum Presence: CaseIterable, Sendable {
    /// A biometric wrap exists and the policy uses it.
    case available
    /// The policy is `preferred` and there is no biometric wrap.
    case unenrolled
    /// The policy is `required` and there is no biometric wrap.
    case required
    /// The policy is `off`.
    case off
  }

  /// What became of the biometric prompt; `none` except on the occasion `unlock`.
  public enum Outcome: CaseIterable, Sendable {
    case none, success, failed, cancelled, lockout, lockoutPermanent, notEnrolled, invalidated
    case unavailable
    /// The host says success, and the key store gave no key (SES-10).
    case withheld
  }

  /// The choice of organisation against the memberships as known.
  public enum Membership: CaseIterable, Sendable {
    /// The memberships were never fetched.
    case unasked
    case noneAtAll
    /// There are several, and none is chosen.
    case unchosen
    /// There is exactly one active, and it is not chosen yet.
    case single
    /// The chosen one is active.
    case active
    /// The chosen one is revoked, or gone from the list.
    case revoked
    /// The chosen organisation is disabled.
    case disabled
    /// The chosen one has a role that has no routes here.
    case unknownRole
  }

  /// How well the memberships are known in this process.
  public enum Freshness: CaseIterable, Sendable {
    case confirmed
    /// The membership check is in flight.
    case pending
    /// The membership check timed out or failed.
    case unreachable
    /// Not checked yet in this process.
    case cached
  }

  public var occasion: Occasion
  public var keys: Keys
  public var record: Record
  public var clock: Clock
  public var token: Token
  public var window: Window
  public var absence: Absence
  public var network: Network
  public var presence: Presence
  public var outcome: Outcome
  public var membership: Membership
  public var freshness: Freshness
  /// The user or the host asked to lock.
  public var lockedByUser: Bool
  /// Online, the server refused several times in a row for reasons that are on no list.
  public var denied: Bool

  public init(
    occasion: Occasion, keys: Keys, record: Record, clock: Clock, token: Token, window: Window,
    absence: Absence, network: Network, presence: Presence, outcome: Outcome,
    membership: Membership, freshness: Freshness, lockedByUser: Bool, denied: Bool
  ) {
    self.occasion = occasion
    self.keys = keys
    self.record = record
    self.clock = clock
    self.token = token
    self.window = window
    self.absence = absence
    self.network = network
    self.presence = presence
    self.outcome = outcome
    self.membership = membership
    self.freshness = freshness
    self.lockedByUser = lockedByUser
    self.denied = denied
  }
}
