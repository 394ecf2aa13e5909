package org.holdfast;

import java.util.Map;
import org.jetbrains.annotations.NotNull;

/** A request of an operation. */
public interface Request {
  /** The fields that are set, as JSON values; a copy. */
  @NotNull
  Map<String, Object> toMap();
}
