package org.holdfast;

import org.jetbrains.annotations.NotNull;

/** A text out of a list, as the library writes it. */
public interface Code {
  /** The text. */
  @NotNull
  String value();
}
