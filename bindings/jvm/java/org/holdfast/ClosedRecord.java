package org.holdfast;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jetbrains.annotations.NotNull;

/**
 * A request, or a part of one. It is filled by chained calls and read when an operation is called with
 * it, so it must not be changed by another thread meanwhile. A field that is not set is not sent.
 */
public abstract class ClosedRecord implements Request {
  private final Map<String, Object> fields = new LinkedHashMap<>();

  ClosedRecord() {}

  /** Sets a field that cannot be null. */
  final void require(String name, Object value) {
    if (value == null) throw new NullPointerException(getClass().getSimpleName() + "." + name);
    fields.put(name, plain(value));
  }

  /** Sets a field; null removes it. */
  final void set(String name, Object value) {
    if (value == null) fields.remove(name);
    else fields.put(name, plain(value));
  }

  /** Sets a field to a value or to null, which some fields distinguish from absence. */
  final void setOrNull(String name, Object value) {
    fields.put(name, plain(value));
  }

  @Override
  @NotNull
  public final Map<String, Object> toMap() {
    return copied(fields);
  }

  @Override
  public final boolean equals(Object other) {
    return other != null
        && other.getClass() == getClass()
        && ((ClosedRecord) other).fields.equals(fields);
  }

  @Override
  public final int hashCode() {
    return fields.hashCode();
  }

  /** The names of the fields that are set. Without values, which can be secrets or personal. */
  @Override
  public final String toString() {
    return getClass().getSimpleName() + fields.keySet();
  }

  /** The JSON value of a field: records become maps, codes become texts; containers are copied. */
  private static Object plain(Object value) {
    if (value instanceof Request) return ((Request) value).toMap();
    if (value instanceof Code) return ((Code) value).value();
    if (value instanceof Map) return copied((Map<?, ?>) value);
    if (value instanceof Iterable) {
      List<Object> copy = new ArrayList<>();
      for (Object one : (Iterable<?>) value) copy.add(plain(one));
      return copy;
    }
    return value;
  }

  private static Map<String, Object> copied(Map<?, ?> map) {
    Map<String, Object> copy = new LinkedHashMap<>();
    for (Map.Entry<?, ?> one : map.entrySet()) {
      if (!(one.getKey() instanceof String))
        throw new IllegalArgumentException("the names of a JSON object are strings");
      copy.put((String) one.getKey(), plain(one.getValue()));
    }
    return copy;
  }
}
