/// What Apple's keychain and prompts answer, as pure functions (docs/platforms.md has the tables).
public enum KeychainAnswers {
  /// The result of a Keychain call. Only what is known to mean it is `notFound`: the library offers the
  /// sign-in where the device key is not found.
  public static func result(of status: Int32) -> KeyResult {
    switch status {
    case 0: .ok
    case -25300: .notFound  // errSecItemNotFound
    case -25308: .locked  // errSecInteractionNotAllowed: before the first unlock after a start
    case -128: .cancelled  // errSecUserCanceled
    default: .failed
    }
  }

  /// The outcome of a prompt for `session_unlock`, from the code of an LAError; nil: success.
  public static func outcome(of code: Int?) -> Outcome {
    switch code {
    case nil: .success
    case -1: .failed  // authenticationFailed
    case -2, -3, -4, -9, -1004: .cancelled  // user, fallback, system, app; notInteractive
    case -8: .lockoutPermanent  // biometryLockout: only the device's passcode ends it
    case -5, -7: .notEnrolled  // passcodeNotSet, biometryNotEnrolled
    case -6, -12, -13: .unavailable  // biometryNotAvailable, NotPaired, Disconnected
    default: .failed
    }
  }

  /// The answer to a `load` whose prompt had this outcome.
  public static func result(of outcome: Outcome) -> KeyResult {
    switch outcome {
    case .success: .ok
    case .failed: .failed
    case .cancelled: .cancelled
    case .lockout: .lockout
    case .lockoutPermanent: .lockoutPermanent
    case .notEnrolled: .notEnrolled
    case .invalidated: .invalidated
    case .unavailable: .unavailable
    }
  }
}
