package org.holdfast.android;

import static org.junit.jupiter.api.Assertions.*;

import android.content.Context;
import androidx.biometric.BiometricPrompt;
import androidx.fragment.app.FragmentActivity;
import java.util.*;
import javax.crypto.Cipher;
import org.holdfast.*;
import org.junit.jupiter.api.Test;

/** The biometric prompt: its errors, and what counts as a release. */
class PromptTest {
  private final Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
  private BiometricGate gate = new BiometricGate(new Context(), FragmentActivity::new);

  PromptTest() throws Exception {}

  private KeyResult refused(BiometricPrompt.Script script) {
    BiometricPrompt.script = script;
    return assertThrows(KeyStoreException.class, () -> gate.release(cipher, "Unlock")).getResult();
  }

  /** The numbers of androidx.biometric, in the order of docs/platforms.md. */
  @Test
  void each_error_has_its_answer() {
    Map<KeyResult, List<Integer>> table =
        Map.of(
            KeyResult.CANCELLED, List.of(10, 13, 5, 3),
            KeyResult.LOCKOUT, List.of(7),
            KeyResult.LOCKOUT_PERMANENT, List.of(9),
            KeyResult.NOT_ENROLLED, List.of(11, 14),
            KeyResult.UNAVAILABLE, List.of(12, 1, 15),
            KeyResult.FAILED, List.of(2, 4, 8, 99));
    table.forEach((answer, numbers) -> {
      for (int number : numbers)
        assertEquals(answer, refused((info, object, callback) -> callback.onAuthenticationError(number, "")));
    });
  }

  @Test
  void one_mismatch_ends_nothing_and_a_success_releases() throws Exception {
    BiometricPrompt.script = (info, object, callback) -> {
      assertEquals("Unlock", info.title);
      assertEquals(15, info.authenticators, "strong biometrics alone");
      callback.onAuthenticationFailed();
      callback.onAuthenticationSucceeded(new BiometricPrompt.AuthenticationResult(object));
    };
    assertSame(cipher, gate.release(cipher, "Unlock"));
  }

  @Test
  void a_success_without_a_cipher_is_a_failure() {
    for (var empty : new BiometricPrompt.CryptoObject[] {null, new BiometricPrompt.CryptoObject(null)}) {
      var result = new BiometricPrompt.AuthenticationResult(empty);
      assertEquals(
          KeyResult.FAILED, refused((info, object, callback) -> callback.onAuthenticationSucceeded(result)));
    }
  }

  @Test
  void an_interrupt_dismisses_the_prompt() throws Exception {
    Thread unlocking = Thread.currentThread();
    BiometricPrompt.script = (info, object, callback) -> unlocking.interrupt();
    assertThrows(InterruptedException.class, () -> gate.release(cipher, "Unlock"));
    assertTrue(BiometricPrompt.dismissed);
  }

  @Test
  void without_an_activity_the_prompt_is_cancelled() {
    gate = new BiometricGate(new Context(), () -> null);
    assertEquals(KeyResult.CANCELLED, refused(null));
  }
}
