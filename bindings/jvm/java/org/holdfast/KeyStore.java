package org.holdfast;

import org.jetbrains.annotations.*;

/**
 * The platform's keychain. A key has 32 bytes; {@code device} is one per installation, {@code
 * session} is new with every sign-in and unlock, and {@code biometric} needs the user's presence.
 *
 * <p>The methods are called inside calls of the library, on their threads, one at a time: they make no
 * calls of their own, and wait for no thread that does. {@code sessionUnlock} loads {@code biometric}
 * with a prompt before its call. Anything but the three results below is thrown as a {@link
 * KeyStoreException}; any other exception counts as {@code FAILED}. Never claim that a key does not
 * exist while the store does not work: the library would set the files aside.
 */
public interface KeyStore {
  /**
   * Finds a key.
   *
   * @param prompt the text of the prompt with which the user releases the key, on the thread that
   *     unlocks: it is interrupted when the user locks, logs out or unlocks anew, and when the handle is
   *     closed. null: show none, and throw {@code CANCELLED} for a key that needs one
   * @return the key, which the caller overwrites; null: the store works and has no such key
   */
  @Nullable
  byte[] load(@NotNull String name, @Nullable String prompt) throws Exception;

  /**
   * Stores or replaces a key, durably and without a prompt.
   *
   * @param key the key; the caller overwrites the array afterwards
   */
  void save(@NotNull String name, @NotNull byte[] key, @NotNull KeyProtection protection) throws Exception;

  /** Removes a key; a missing one is no failure. Afterwards {@code load} returns null. */
  void erase(@NotNull String name) throws Exception;
}
