package org.holdfast.android;

import android.security.keystore.KeyPermanentlyInvalidatedException;
import android.security.keystore.UserNotAuthenticatedException;
import java.security.UnrecoverableKeyException;
import org.holdfast.KeyResult;
import org.holdfast.KeyStoreException;
import org.jetbrains.annotations.NotNull;

/**
 * The library's answer for an exception of the Android key store. Devices report an invalidated key
 * when it is fetched, when a cipher is made with it, or when that is used, and some wrap the exception
 * into others, so its causes count too.
 */
final class KeyAnswers {
  private KeyAnswers() {}

  /** The answer; what has none of its own is {@code failed}, never {@code not_found}. */
  @NotNull
  static KeyStoreException of(@NotNull Throwable failure) {
    if (failure instanceof KeyStoreException) return (KeyStoreException) failure;
    int depth = 0;
    for (Throwable one = failure; one != null && depth < 16; one = one.getCause(), depth++) {
      if (one instanceof KeyPermanentlyInvalidatedException || saysInvalidated(one))
        return new KeyStoreException(KeyResult.INVALIDATED, failure);
      if (one instanceof UserNotAuthenticatedException || one instanceof InterruptedException)
        return new KeyStoreException(KeyResult.CANCELLED, failure);
    }
    return new KeyStoreException(KeyResult.FAILED, failure);
  }

  /**
   * Before Android 9 a key that was invalidated by an enrolment could not be recovered when it was
   * fetched; the cause, an exception of the system, then has these words.
   */
  private static boolean saysInvalidated(Throwable one) {
    String words = one.getMessage();
    return words != null
        && (one instanceof UnrecoverableKeyException
            || one.getClass().getName().equals("android.security.KeyStoreException"))
        && words.contains("Key permanently invalidated");
  }
}
