package org.holdfast;

import java.util.*;
import org.jetbrains.annotations.NotNull;

/**
 * A reply, or a part of one. It cannot be changed. Fields that this version does not know are ignored,
 * and kept in {@link #toMap}.
 */
public abstract class OpenRecord extends Value {
  private final Map<String, Object> json;

  OpenRecord(Map<String, ?> json) {
    this.json = Collections.unmodifiableMap(new LinkedHashMap<String, Object>(json));
  }

  /** All fields as they came, as JSON values; cannot be changed. */
  @NotNull public final Map<String, Object> toMap() { return json; }

  @Override final Object content() { return json; }

  /** The type, and the fields that are codes, numbers or flags. Without texts, which can be secrets
   * or personal. */
  @Override
  public final String toString() {
    StringBuilder text = new StringBuilder();
    describe(text);
    return getClass().getSimpleName() + '{' + (text.length() == 0 ? text : text.substring(2)) + '}';
  }

  /** Appends the fields that a log may have. */
  abstract void describe(StringBuilder text);

  static void describe(StringBuilder text, String name, Object value) {
    if (value != null) text.append(", ").append(name).append('=').append(value);
  }

  // ---- reading ----

  /** Reads a value; ClassCastException: it has another type. */
  interface Reading<T> {
    T of(Object value);
  }

  final <T> T required(String name, Reading<T> reading) {
    T value = optional(name, reading);
    if (value == null) throw wrong(name, "is missing", null);
    return value;
  }

  final <T> T optional(String name, Reading<T> reading) {
    Object value = json.get(name);
    try {
      return value == null ? null : reading.of(value);
    } catch (ClassCastException other) {
      throw wrong(name, "has another type", other);
    }
  }

  private RuntimeException wrong(String name, String what, Throwable cause) {
    String message = getClass().getSimpleName() + "." + name + " " + what;
    return new IllegalArgumentException(message, cause);
  }

  /** The fields that are not among these names. */
  final Map<String, Object> others(String... names) {
    Map<String, Object> rest = new LinkedHashMap<>(json);
    for (String one : names) rest.remove(one);
    return Collections.unmodifiableMap(rest);
  }

  static String string(Object value) { return (String) value; }

  static Boolean flag(Object value) { return (Boolean) value; }

  static Long integer(Object value) {
    return value instanceof Integer ? Long.valueOf((Integer) value) : (Long) value;
  }

  static Double number(Object value) { return ((Number) value).doubleValue(); }

  static Object any(Object value) { return value; }

  @SuppressWarnings("unchecked") // the names of a JSON object are texts
  static Map<String, Object> object(Object value) { return (Map<String, Object>) value; }

  static <T> Reading<List<T>> list(Reading<T> each) {
    return values -> {
      List<T> read = new ArrayList<>();
      for (Object one : (List<?>) values) read.add(each.of(one));
      return Collections.unmodifiableList(read);
    };
  }

  static <T> Reading<Map<String, T>> map(Reading<T> each) {
    return values -> {
      Map<String, T> read = new LinkedHashMap<>();
      object(values).forEach((name, one) -> read.put(name, each.of(one)));
      return Collections.unmodifiableMap(read);
    };
  }
}
