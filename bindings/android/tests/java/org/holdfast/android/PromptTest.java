package org.holdfast.android;

import static org.junit.jupiter.api.Assertions.*;

import android.content.Context;
import androidx.biometric.BiometricPrompt;
import androidx.fragment.app.FragmentActivity;
import javax.crypto.Cipher;
import org.holdfast.*;
import org.junit.jupiter.api.Test;

/** The biometric prompt: its errors, and what counts as a release. */
class PromptTest {
  private static final Context CONTEXT = new Context();

  private static KeyResult refused(BiometricPrompt.Script script) throws Exception {
    BiometricPrompt.script = script;
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    BiometricGate gate = new BiometricGate(CONTEXT, FragmentActivity::new);
    return assertThrows(KeyStoreException.class, () -> gate.release(cipher, "Unlock")).getResult();
  }

  /** The numbers of androidx.biometric, in the order of docs/platforms.md. */
  @Test
  void each_error_has_its_answer() throws Exception {
    int[][] numbers = {{10, 13, 5, 3}, {7}, {9}, {11, 14}, {12, 1, 15}, {2, 4, 8, 99}};
    KeyResult[] answers = {
      KeyResult.CANCELLED,
      KeyResult.LOCKOUT,
      KeyResult.LOCKOUT_PERMANENT,
      KeyResult.NOT_ENROLLED,
      KeyResult.UNAVAILABLE,
      KeyResult.FAILED
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
        KeyResult.FAILED,
        refused(
            (info, object, callback) ->
                callback.onAuthenticationSucceeded(new BiometricPrompt.AuthenticationResult(null))));
    assertEquals(
        KeyResult.FAILED,
        refused(
            (info, object, callback) ->
                callback.onAuthenticationSucceeded(
                    new BiometricPrompt.AuthenticationResult(new BiometricPrompt.CryptoObject(null)))));
  }

  @Test
  void an_interrupt_dismisses_the_prompt() throws Exception {
    int[] told = {0};
    Thread unlocking = Thread.currentThread();
    BiometricPrompt.script =
        (info, object, callback) -> {
          BiometricPrompt.dismissed = error -> told[0] = error;
          unlocking.interrupt();
        };
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    BiometricGate gate = new BiometricGate(CONTEXT, FragmentActivity::new);
    assertThrows(InterruptedException.class, () -> gate.release(cipher, "Unlock"));
    assertEquals(5, told[0]);
  }

  @Test
  void without_an_activity_the_prompt_is_cancelled() throws Exception {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    BiometricGate gate = new BiometricGate(CONTEXT, () -> null);
    assertEquals(
        KeyResult.CANCELLED,
        assertThrows(KeyStoreException.class, () -> gate.release(cipher, "Unlock")).getResult());
  }
}
