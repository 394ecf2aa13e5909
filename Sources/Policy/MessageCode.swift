/// Everything that is said to a person: one code each, stable, in `Messages` in every language.
///
/// A code that appears in several places (`offline` is a banner and an explanation) says the same
/// in all of them.
public enum MessageCode: String, CaseIterable, Sendable {
  // Reasons: what a decision says.
  case active
  case sessionMissing = "session_missing"
  case sessionCorrupt = "session_corrupt"
  case sessionExpired = "session_expired"
  case sessionWindow = "session_window"
  case backgroundTimeout = "background_timeout"
  case clockMovedBack = "clock_moved_back"
  case sessionEnded = "session_ended"
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
  case routeForbidden = "route_forbidden"
  case serverUnreachable = "server_unreachable"
  case denied

  // Banners.
  case staleData = "stale_data"
  case offline
  case nothingCachedYet = "nothing_cached_yet"
  case queuedNotSent = "queued_not_sent"
  case encryptedRequiresConnectivity = "encrypted_requires_connectivity"

  // Why nothing is sent.
  case nothingQueued = "nothing_queued"
  case sending
  case locked
  case token
  case backOff = "back_off"
  case organisation
  case dependency
  case parked
  case otherUser = "other_user"
  case ready

  // Why one item is not sent.
  case conflict
  case unknownOutcome = "unknown_outcome"
  case membershipEnded = "membership_ended"
  case rejected
  case invalidValue = "invalid_value"
  case missingValue = "missing_value"
  case tooLong = "too_long"
  case duplicate
  case missingParent = "missing_parent"
  case serverRule = "server_rule"
  case schemaNotReady = "schema_not_ready"
  case unreadable
  case dependencyParked = "dependency_parked"
  case dependencyWaiting = "dependency_waiting"
  case waitingTime = "waiting_time"
  case waitingToken = "waiting_token"
  case waitingOrganisation = "waiting_organisation"

  // Events and messages.
  case syncCompleted = "sync_completed"
  case orgAccessChanged = "org_access_changed"
  case storageRecovered = "storage_recovered"
  case itemParked = "item_parked"
  case cacheRecovered = "cache_recovered"
  case contactGone = "contact_gone"

  /// The compiler's own look-up of so many cases keeps a lazily made table, which Embedded Swift
  /// does not guard against two threads.
  public init?(rawValue: String) {
    guard let found = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = found
  }
}
