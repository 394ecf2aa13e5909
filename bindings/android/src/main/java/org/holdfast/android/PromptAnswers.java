package org.holdfast.android;

import org.holdfast.KeyResult;
import org.jetbrains.annotations.NotNull;

/** The library's answer for an error of androidx.biometric's BiometricPrompt, by its number. */
final class PromptAnswers {
  private PromptAnswers() {}

  /** The answer; an error of a later version is {@code failed}. */
  @NotNull
  static KeyResult of(int error) {
    switch (error) {
      case 3: // ERROR_TIMEOUT
      case 5: // ERROR_CANCELED, by the system
      case 10: // ERROR_USER_CANCELED
      case 13: // ERROR_NEGATIVE_BUTTON
        return KeyResult.CANCELLED;
      case 7: // ERROR_LOCKOUT
        return KeyResult.LOCKOUT;
      case 9: // ERROR_LOCKOUT_PERMANENT
        return KeyResult.LOCKOUT_PERMANENT;
      case 11: // ERROR_NO_BIOMETRICS
      case 14: // ERROR_NO_DEVICE_CREDENTIAL
        return KeyResult.NOT_ENROLLED;
      case 1: // ERROR_HW_UNAVAILABLE
      case 12: // ERROR_HW_NOT_PRESENT
      case 15: // ERROR_SECURITY_UPDATE_REQUIRED
        return KeyResult.UNAVAILABLE;
      default: // ERROR_UNABLE_TO_PROCESS, ERROR_NO_SPACE, ERROR_VENDOR
        return KeyResult.FAILED;
    }
  }
}
