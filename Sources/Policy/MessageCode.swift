import Base

/// The codes of all messages to users. They are stable; `Messages` has a text for each of them in
/// every language.
///
/// `Banner` shares its raw values with this list, so a banner leads to its message by its code. A code
/// that is used in several places (`offline` is a banner and an explanation) has the same text in all
/// of them.
public enum MessageCode: String, CaseIterable, Sendable {
  // Why a screen is shown.
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
  case firstChoice = "first_choice"
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

  // Why a sign-in failed.
  case wrongPassword = "wrong_password"
  case unconfirmedAddress = "unconfirmed_address"
  case providerDisabled = "provider_disabled"
  case wrongAPIKey = "wrong_api_key"
  case wrongURL = "wrong_url"
  case notSupabase = "not_supabase"
  case projectPaused = "project_paused"
  case signingInAgain = "signing_in_again"
  case keyStore = "key_store"
  case userBanned = "user_banned"
  case answerLost = "answer_lost"

  // The prompt of the key store.
  case unlockPrompt = "unlock_prompt"

  // Banners.
  case erasureOwed = "erasure_owed"
  case staleData = "stale_data"
  case offline
  case nothingCachedYet = "nothing_cached_yet"
  case partlyCached = "partly_cached"
  case queuedNotSent = "queued_not_sent"
  case encryptedRequiresConnectivity = "encrypted_requires_connectivity"

  // Why nothing is sent.
  case nothingQueued = "nothing_queued"
  case sending
  case locked
  case token
  case backOff = "back_off"
  case serverPause = "server_pause"
  case organisation
  case dependency
  case parked
  case otherUser = "other_user"
  case ready

  // Why one item is not sent.
  case conflict
  case unknownOutcome = "unknown_outcome"
  case rejected
  case invalidValue = "invalid_value"
  case missingValue = "missing_value"
  case tooLong = "too_long"
  case duplicate
  case missingParent = "missing_parent"
  case missingColumn = "missing_column"
  case serverRule = "server_rule"
  case blocked
  case schemaNotReady = "schema_not_ready"
  case unreadable
  case dependencyParked = "dependency_parked"
  case dependencyWaiting = "dependency_waiting"
  case changedElsewhere = "changed_elsewhere"
  case deletedElsewhere = "deleted_elsewhere"
  case notAllowed = "not_allowed"
  case parentDeleted = "parent_deleted"
  case waitingTime = "waiting_time"
  case waitingOrganisation = "waiting_organisation"
  case waitingBlocked = "waiting_blocked"

  // Events and messages.
  case syncCompleted = "sync_completed"
  case syncCompletedParked = "sync_completed_parked"
  case syncCompletedWaiting = "sync_completed_waiting"
  case storageRecovered = "storage_recovered"
  case storageKeyLost = "storage_key_lost"
  case cacheRecovered = "cache_recovered"
  case contactGone = "contact_gone"
  case contactUnreachable = "contact_unreachable"
  case contactWithdrawn = "contact_withdrawn"

  public init?(rawValue: String) { self.init(listed: rawValue) }
}

extension MessageCode {
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
