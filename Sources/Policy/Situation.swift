/// All facts that a decision about the session depends on.
///
/// Every axis is a closed list, so that tests can go through the whole product. The engine collects
/// the facts (clocks, rows, keys); this module decides.
public struct Situation: Equatable, Sendable {
  /// What the decision is asked for.
  public enum Occasion: CaseIterable, Sendable {
    /// The process starts: `holdfast_session_resume`.
    case resume
    /// The app is back on the screen.
    case foreground
    /// The biometric prompt has ended, with an `Outcome`.
    case unlock
    /// A screen is about to open, or a response has come.
    case navigate
  }

  /// The state of the device key in the key store.
  public enum Keys: CaseIterable, Sendable {
    case ready
    /// The device has not been unlocked since it started.
    case locked
    /// The store did not answer.
    case failed
    /// For a while now, the store answers that it has no key, although files are sealed with one.
    case lost
  }

  /// The stored session.
  public enum Record: CaseIterable, Sendable {
    case missing
    /// The record and the key exist, but the record does not decrypt.
    case corrupt
    /// The server has proved the end of the session (`EndReason`).
    case ended
    /// There is no session key; only the biometric key opens the session.
    case sealed
    /// Readable with the session key.
    case open
  }

  /// The device's clock, compared with earlier readings.
  public enum Clock: CaseIterable, Sendable {
    case steady, movedBack
  }

  /// The access token, by the server's time.
  public enum Token: CaseIterable, Sendable {
    case valid, expired
  }

  /// The time since its user last proved who they are, or, for the absolute limit, since the server last confirmed the
  /// session.
  public enum Window: CaseIterable, Sendable {
    /// Within `session_window_s`.
    case inside
    /// Beyond `session_window_s`.
    case outside
    /// Beyond `offline_limit_s`, the absolute limit.
    case pastLimit
  }

  /// The time in the background. It counts only from `holdfast_session_background`: a process that
  /// ended without that call was not in the background.
  public enum Absence: CaseIterable, Sendable {
    case brief
    /// Longer than `background_timeout_s`; with `lock_on_background` `at_once`, in any process but the one that was left.
    case long
  }

  /// The network, as the host reports it.
  public enum Network: CaseIterable, Sendable {
    case online, offline
  }

  /// Whether a biometric prompt can open the session.
  public enum Presence: CaseIterable, Sendable {
    /// A biometric wrap exists and the policy uses it.
    case available
    /// The policy is `preferred` and there is no biometric wrap.
    case unenrolled
    /// The policy is `required` and there is no biometric wrap.
    case requiredButMissing
    /// The policy is `off`.
    case off
  }

  /// The outcome of the biometric prompt; `none` except on the occasion `unlock`.
  public enum Outcome: CaseIterable, Sendable {
    case none, success, failed, cancelled, lockout, lockoutPermanent, notEnrolled, invalidated
    case unavailable
    /// The prompt succeeded, but the key store gave no fitting key (SES-10), or another process has changed the session.
    case withheld
  }

  /// The chosen organisation, compared with the known memberships.
  public enum Membership: CaseIterable, Sendable {
    /// The memberships were never fetched, or last confirmed longer ago than `offline_limit_s`.
    case unasked
    case noneAtAll
    /// None is chosen, and there are several usable memberships, or only such whose organisation is disabled.
    case unchosen
    /// There is exactly one usable membership, and it is not chosen yet. It is chosen then.
    case single
    /// The chosen membership is active.
    case active
    /// The chosen membership is revoked or gone from the list.
    case revoked
    /// The chosen organisation is disabled.
    case disabled
    /// The chosen membership, or the only usable one, has a role that the configuration has no routes for.
    case unknownRole

    /// Why the user has to choose an organisation; nil: they do not have to.
    public var obstacle: MessageCode? {
      switch self {
      case .unasked, .single, .active: nil
      case .noneAtAll: .noMembership
      case .unchosen: .firstChoice
      case .revoked: .membershipRevoked
      case .disabled: .orgDisabled
      case .unknownRole: .roleUnknown
      }
    }
  }

  /// Whether this process has confirmed the memberships with the server.
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

  public init(
    occasion: Occasion, keys: Keys, record: Record, clock: Clock, token: Token, window: Window,
    absence: Absence, network: Network, presence: Presence, outcome: Outcome,
    membership: Membership, freshness: Freshness, lockedByUser: Bool
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
  }
}
