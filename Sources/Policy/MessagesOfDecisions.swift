extension Reason {
  /// What the screen says about the reason; nil where a screen speaks for itself.
  public var word: MessageCode? {
    switch self {
    case .active, .unlocked, .chosen, .switched: nil
    case .sessionMissing: .sessionMissing
    case .sessionCorrupt: .sessionCorrupt
    case .sessionExpired: .sessionExpired
    case .sessionWindow: .sessionWindow
    case .backgroundTimeout: .backgroundTimeout
    case .clockMovedBack: .clockMovedBack
    case .sessionEnded: .sessionEnded
    case .signedOut: .signedOut
    case .keyLost: .keyLost
    case .keystoreLocked: .keystoreLocked
    case .keystoreFailed: .keystoreFailed
    case .biometricFailed: .biometricFailed
    case .biometricCancelled: .biometricCancelled
    case .biometricLockout: .biometricLockout
    case .biometricLockoutPermanent: .biometricLockoutPermanent
    case .biometricNotEnrolled: .biometricNotEnrolled
    case .biometricUnavailable: .biometricUnavailable
    case .biometricWithheld: .biometricWithheld
    case .biometricOff: .biometricOff
    case .userLocked: .userLocked
    case .firstChoice: .firstChoice
    case .noMembership: .noMembership
    case .membershipRevoked: .membershipRevoked
    case .orgDisabled: .orgDisabled
    case .roleUnknown: .roleUnknown
    case .guardPending: .guardPending
    case .signingIn: .signingIn
    case .signInFailed: .signInFailed
    case .signInExpired: .signInExpired
    case .signInCancelled: .signInCancelled
    case .routeForbidden: .routeForbidden
    case .serverUnreachable: .serverUnreachable
    case .denied: .denied
    }
  }
}

extension Banner {
  /// What the banner says.
  public var word: MessageCode {
    switch self {
    case .staleData: .staleData
    case .offline: .offline
    case .nothingCachedYet: .nothingCachedYet
    case .queuedNotSent: .queuedNotSent
    case .encryptedRequiresConnectivity: .encryptedRequiresConnectivity
    }
  }
}

extension ItemFault {
  /// What a parked item says about itself.
  public var word: MessageCode {
    switch self {
    case .rejected: .rejected
    case .invalidValue: .invalidValue
    case .missingValue: .missingValue
    case .tooLong: .tooLong
    case .duplicate: .duplicate
    case .serverRule: .serverRule
    }
  }
}
