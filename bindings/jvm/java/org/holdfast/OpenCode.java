package org.holdfast;

import org.jetbrains.annotations.NotNull;

/** A text out of a list that a later version of the library may have added to. */
public abstract class OpenCode implements Code {
  private final String value;

  OpenCode(String value) {
    this.value = value;
  }

  @Override
  @NotNull
  public final String value() {
    return value;
  }

  @Override
  public final boolean equals(Object other) {
    return other != null
        && other.getClass() == getClass()
        && ((OpenCode) other).value.equals(value);
  }

  @Override
  public final int hashCode() {
    return value.hashCode();
  }

  @Override
  @NotNull
  public final String toString() {
    return value;
  }
}
