package org.holdfast.android;

import javax.crypto.Cipher;
import org.holdfast.KeyStoreException;
import org.jetbrains.annotations.NotNull;

/** Releases a cipher whose key needs the user's presence. */
public interface PromptGate {
  /**
   * Shows a prompt and waits for the user, on the thread that unlocks. An interrupt dismisses it.
   *
   * @param text what the library says, in the configured language
   * @return the cipher that the prompt has released
   * @throws KeyStoreException what the prompt said otherwise
   */
  @NotNull
  Cipher release(@NotNull Cipher cipher, @NotNull String text) throws Exception;
}
