package org.holdfast;

import java.util.*;
import org.jetbrains.annotations.NotNull;

/**
 * A request, or a part of one. It is filled by chained calls and read when an operation is called with
 * it, so it must not be changed by another thread meanwhile. A field that is not set is not sent.
 */
public abstract class ClosedRecord extends Value implements Request {
  final Map<String, Object> fields = new LinkedHashMap<>();

  ClosedRecord() {}

  /** Sets a field that cannot be null. */
  final void require(String name, Object value) {
    if (value == null) throw new NullPointerException(getClass().getSimpleName() + "." + name);
    fields.put(name, value);
  }

  /** Sets a field; null removes it. */
  final void set(String name, Object value) {
    if (value == null) fields.remove(name);
    else fields.put(name, value);
  }

  /** Sets a field to a value or to null, which some fields distinguish from absence. */
  final void put(String name, Object value) { fields.put(name, value); }

  @Override
  @NotNull public final Map<String, Object> toMap() { return Json.read(Json.write(fields), 0); }

  @Override final Object content() { return toMap(); }

  /** The names of the fields that are set. Without values, which can be secrets or personal. */
  @Override public final String toString() { return getClass().getSimpleName() + fields.keySet(); }
}
