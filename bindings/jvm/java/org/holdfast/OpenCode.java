package org.holdfast;

import org.jetbrains.annotations.NotNull;

/** A text out of a list that a later version of the library may have added to. */
public abstract class OpenCode extends Value implements Code {
  private final String value;

  OpenCode(String value) { this.value = value; }

  @Override @NotNull public final String value() { return value; }

  @Override final Object content() { return value; }

  @Override @NotNull public final String toString() { return value; }
}
