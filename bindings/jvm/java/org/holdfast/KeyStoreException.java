package org.holdfast;

import org.jetbrains.annotations.*;

/** A key store's answer other than a key: locked, cancelled, invalidated and so on. */
public class KeyStoreException extends Exception {
  private static final long serialVersionUID = 1;

  private final KeyResult result;

  /** An answer. */
  public KeyStoreException(@NotNull KeyResult result) { this(result, null); }

  /** An answer, and what led to it. */
  public KeyStoreException(@NotNull KeyResult result, @Nullable Throwable cause) {
    super("the key store answers " + result.value(), cause);
    if (result == KeyResult.OK) throw new IllegalArgumentException("ok is no exception");
    this.result = result;
  }

  /** The answer. */
  @NotNull public KeyResult getResult() { return result; }
}
