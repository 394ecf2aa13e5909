package org.holdfast.android;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import android.content.Context;
import androidx.biometric.BiometricPrompt;
import androidx.fragment.app.FragmentActivity;
import java.io.File;
import javax.crypto.Cipher;
import org.holdfast.KeyStoreException;
import org.holdfast.Types.KeyCompleteRequestResult;
import org.junit.jupiter.api.Test;

/** The biometric prompt: its errors, and what counts as a release. */
class PromptTest {
  private static final Context CONTEXT =
      new Context() {
        @Override
        public File getNoBackupFilesDir() {
          throw new UnsupportedOperationException();
        }

        @Override
        public <T> T getSystemService(Class<T> service) {
          throw new UnsupportedOperationException();
        }

        @Override
        public String getString(int resource) {
          return "Cancel";
        }

        @Override
        public Context getApplicationContext() {
          return this;
        }
      };

  private static KeyCompleteRequestResult refused(BiometricPrompt.Script script) throws Exception {
    BiometricPrompt.script = script;
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    BiometricGate gate = new BiometricGate(CONTEXT, FragmentActivity::new);
    return assertThrows(KeyStoreException.class, () -> gate.release(cipher, "Unlock")).getResult();
  }

  /** The numbers of androidx.biometric, in the order of docs/platforms.md. */
  @Test
  void each_error_has_its_answer() throws Exception {
    int[][] numbers = {{10, 13, 5, 3}, {7}, {9}, {11, 14}, {12, 1, 15}, {2, 4, 8, 99}};
    KeyCompleteRequestResult[] answers = {
      KeyCompleteRequestResult.CANCELLED,
      KeyCompleteRequestResult.LOCKOUT,
      KeyCompleteRequestResult.LOCKOUT_PERMANENT,
      KeyCompleteRequestResult.NOT_ENROLLED,
      KeyCompleteRequestResult.UNAVAILABLE,
      KeyCompleteRequestResult.FAILED
    };
    for (int row = 0; row < numbers.length; row++)
      for (int number : numbers[row])
        assertEquals(
            answers[row],
            refused((info, object, callback) -> callback.onAuthenticationError(number, "")),
            "error " + number);
  }

  @Test
  void one_mismatch_ends_nothing_and_a_success_releases() throws Exception {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    BiometricPrompt.script =
        (info, object, callback) -> {
          assertEquals("Unlock", info.title);
          assertEquals(15, info.authenticators, "strong biometrics alone");
          callback.onAuthenticationFailed();
          callback.onAuthenticationSucceeded(new BiometricPrompt.AuthenticationResult(object));
        };
    BiometricGate gate = new BiometricGate(CONTEXT, FragmentActivity::new);
    assertSame(cipher, gate.release(cipher, "Unlock"));
  }

  @Test
  void a_success_without_a_cipher_is_a_failure() throws Exception {
    assertEquals(
        KeyCompleteRequestResult.FAILED,
        refused(
            (info, object, callback) ->
                callback.onAuthenticationSucceeded(
                    new BiometricPrompt.AuthenticationResult(null))));
    assertEquals(
        KeyCompleteRequestResult.FAILED,
        refused(
            (info, object, callback) ->
                callback.onAuthenticationSucceeded(
                    new BiometricPrompt.AuthenticationResult(
                        new BiometricPrompt.CryptoObject(null)))));
  }

  @Test
  void without_an_activity_the_prompt_is_cancelled() throws Exception {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    BiometricGate gate = new BiometricGate(CONTEXT, () -> null);
    assertEquals(
        KeyCompleteRequestResult.CANCELLED,
        assertThrows(KeyStoreException.class, () -> gate.release(cipher, "Unlock")).getResult());
  }
}
