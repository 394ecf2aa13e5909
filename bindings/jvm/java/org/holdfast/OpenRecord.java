package org.holdfast;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jetbrains.annotations.NotNull;

/**
 * A reply, an event, or a part of one. It cannot be changed. Fields that this version does not know
 * are ignored, and kept in {@link #toMap}.
 */
public abstract class OpenRecord {
  private final Map<String, Object> json;

  OpenRecord(Map<String, ?> json) {
    this.json = Collections.unmodifiableMap(new LinkedHashMap<String, Object>(json));
  }

  /** All fields as they came, as JSON values; cannot be changed. */
  @NotNull
  public final Map<String, Object> toMap() {
    return json;
  }

  @Override
  public final boolean equals(Object other) {
    return other != null
        && other.getClass() == getClass()
        && ((OpenRecord) other).json.equals(json);
  }

  @Override
  public final int hashCode() {
    return json.hashCode();
  }

  /** The type, and the fields that are codes, numbers or flags. Without texts, which can be secrets
   * or personal. */
  @Override
  public final String toString() {
    StringBuilder text = new StringBuilder(getClass().getSimpleName()).append('{');
    describe(text);
    if (text.charAt(text.length() - 1) == ' ') text.setLength(text.length() - 2);
    return text.append('}').toString();
  }

  /** Appends the fields that a log may have. */
  abstract void describe(StringBuilder text);

  static void describe(StringBuilder text, String name, Object value) {
    if (value != null) text.append(name).append('=').append(value).append(", ");
  }

  // ---- reading ----

  final String string(String name) {
    return required(name, optionalString(name));
  }

  final String optionalString(String name) {
    return as(String.class, name, json.get(name));
  }

  final boolean flag(String name) {
    return required(name, optionalFlag(name));
  }

  final Boolean optionalFlag(String name) {
    return as(Boolean.class, name, json.get(name));
  }

  final long integer(String name) {
    return required(name, optionalInteger(name));
  }

  final Long optionalInteger(String name) {
    Object value = json.get(name);
    return value instanceof Integer ? Long.valueOf((Integer) value) : as(Long.class, name, value);
  }

  final double number(String name) {
    return required(name, optionalNumber(name));
  }

  final Double optionalNumber(String name) {
    Number value = as(Number.class, name, json.get(name));
    return value == null ? null : Double.valueOf(value.doubleValue());
  }

  final Map<String, Object> object(String name) {
    return required(name, optionalObject(name));
  }

  final Map<String, Object> optionalObject(String name) {
    return asObject(name, json.get(name));
  }

  final Object any(String name) {
    return json.get(name);
  }

  /** Reads one value of a list or of a map. */
  interface Reading<T> {
    T of(Object value);
  }

  final <T> List<T> list(String name, Reading<T> each) {
    return required(name, optionalList(name, each));
  }

  final <T> List<T> optionalList(String name, Reading<T> each) {
    List<?> values = as(List.class, name, json.get(name));
    if (values == null) return null;
    List<T> read = new ArrayList<>(values.size());
    for (Object one : values) read.add(each.of(one));
    return Collections.unmodifiableList(read);
  }

  final <T> Map<String, T> map(String name, Reading<T> each) {
    return required(name, optionalMap(name, each));
  }

  final <T> Map<String, T> optionalMap(String name, Reading<T> each) {
    Map<String, Object> values = asObject(name, json.get(name));
    if (values == null) return null;
    Map<String, T> read = new LinkedHashMap<>();
    for (Map.Entry<String, Object> one : values.entrySet())
      read.put(one.getKey(), each.of(one.getValue()));
    return Collections.unmodifiableMap(read);
  }

  /** The fields that are not among these names. */
  final Map<String, Object> others(String... names) {
    Map<String, Object> rest = new LinkedHashMap<>(json);
    for (String one : names) rest.remove(one);
    return Collections.unmodifiableMap(rest);
  }

  private <T> T required(String name, T value) {
    if (value == null) throw new IllegalArgumentException(place(name) + " is missing");
    return value;
  }

  private <T> T as(Class<T> type, String name, Object value) {
    if (value != null && !type.isInstance(value))
      throw new IllegalArgumentException(place(name) + " is no " + type.getSimpleName());
    return type.cast(value);
  }

  @SuppressWarnings("unchecked") // the names of a JSON object are texts
  private Map<String, Object> asObject(String name, Object value) {
    return (Map<String, Object>) as(Map.class, name, value);
  }

  private String place(String name) {
    return getClass().getSimpleName() + "." + name;
  }

  // ---- the values of lists and maps ----

  static String asString(Object value) {
    if (value instanceof String) return (String) value;
    throw new IllegalArgumentException("a value of a list is no text");
  }

  static Long asInteger(Object value) {
    if (value instanceof Long) return (Long) value;
    if (value instanceof Integer) return Long.valueOf((Integer) value);
    throw new IllegalArgumentException("a value of a list is no integer");
  }

  @SuppressWarnings("unchecked") // the names of a JSON object are texts
  static Map<String, Object> asObject(Object value) {
    if (value instanceof Map) return (Map<String, Object>) value;
    throw new IllegalArgumentException("a value of a list is no object");
  }
}
