package org.holdfast;

import java.util.Locale;
import org.jetbrains.annotations.NotNull;

/** What a key store answers: HOLDFAST_KEY_* of holdfast.h, in its order. */
public enum KeyResult implements Code {
  OK, NOT_FOUND, LOCKED, CANCELLED, FAILED, LOCKOUT, LOCKOUT_PERMANENT, NOT_ENROLLED, INVALIDATED, UNAVAILABLE;

  @Override @NotNull public String value() { return name().toLowerCase(Locale.ROOT); }
}
