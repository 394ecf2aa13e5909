package org.holdfast.android;

import android.content.Context;
import android.os.*;
import androidx.biometric.*;
import androidx.fragment.app.FragmentActivity;
import java.util.concurrent.*;
import javax.crypto.Cipher;
import org.holdfast.*;
import org.jetbrains.annotations.*;

/**
 * Shows androidx.biometric's prompt over the activity on the screen, with strong biometrics alone:
 * weak ones cannot release a key, and with the device's credential beside them a key would outlive a
 * new enrolment.
 */
public final class BiometricGate implements PromptGate {
  /** Names the activity on the screen. */
  public interface Screen {
    /** The activity; null: the app is not on the screen, and the prompt is cancelled. */
    @Nullable
    FragmentActivity activity();
  }

  private final Screen screen;
  private final String cancel;
  private final Handler main = new Handler(Looper.getMainLooper());

  /**
   * A gate over the present activity.
   *
   * @param context for the word on the button that dismisses the prompt
   */
  public BiometricGate(@NotNull Context context, @NotNull Screen screen) {
    this.screen = screen;
    cancel = context.getString(android.R.string.cancel);
  }

  @Override
  @NotNull
  public Cipher release(@NotNull Cipher cipher, @NotNull String text) throws Exception {
    CompletableFuture<Cipher> released = new CompletableFuture<>();
    main.post(() -> show(cipher, text, released));
    try {
      return released.get();
    } catch (InterruptedException withdrawn) {
      released.cancel(false); // dismisses the prompt
      throw withdrawn;
    } catch (ExecutionException refused) {
      throw refused.getCause() instanceof Exception ? (Exception) refused.getCause() : refused;
    }
  }

  private void show(Cipher cipher, String text, CompletableFuture<Cipher> released) {
    if (released.isDone()) return;
    FragmentActivity activity = screen.activity();
    if (activity == null) {
      released.completeExceptionally(new KeyStoreException(KeyResult.CANCELLED));
      return;
    }
    BiometricPrompt.AuthenticationCallback callback = new BiometricPrompt.AuthenticationCallback() {
      @Override
      public void onAuthenticationSucceeded(BiometricPrompt.AuthenticationResult result) {
        BiometricPrompt.CryptoObject object = result.getCryptoObject();
        Cipher usable = object == null ? null : object.getCipher();
        // Some devices with Android 7 and 8 report success without a cipher.
        if (usable != null) released.complete(usable);
        else released.completeExceptionally(new KeyStoreException(KeyResult.FAILED));
      }

      @Override
      public void onAuthenticationError(int error, CharSequence words) {
        released.completeExceptionally(new KeyStoreException(answer(error)));
      }

      // onAuthenticationFailed is one mismatch, and the prompt stays.
    };
    try {
      BiometricPrompt.PromptInfo info =
          new BiometricPrompt.PromptInfo.Builder()
              .setTitle(text)
              .setNegativeButtonText(cancel)
              .setAllowedAuthenticators(BiometricManager.Authenticators.BIOMETRIC_STRONG)
              .build();
      BiometricPrompt prompt = new BiometricPrompt(activity, main::post, callback);
      prompt.authenticate(info, new BiometricPrompt.CryptoObject(cipher));
      released.whenComplete((usable, refused) -> {
        if (released.isCancelled()) main.post(prompt::cancelAuthentication);
      });
    } catch (RuntimeException failure) {
      released.completeExceptionally(failure);
    }
  }

  /** The library's answer for an error of the prompt; one of a later version is {@code failed}. */
  private static KeyResult answer(int error) {
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
