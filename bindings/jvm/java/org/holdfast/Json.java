package org.holdfast;

import com.google.gson.stream.*;
import java.io.*;
import java.math.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.*;

/**
 * JSON as maps, lists, strings, Long, Double, Boolean and null. Gson's streams read and write it:
 * they use no reflection, so that shrinkers need no rules for them.
 */
final class Json {
  /** A surrogate that is no half of a pair: a pair counts as one character here. */
  private static final Pattern HALF_A_PAIR = Pattern.compile("\\p{Cs}");

  private Json() {}

  /** The UTF-8 text of an object. */
  static byte[] write(Map<String, ?> object) {
    StringWriter text = new StringWriter();
    try {
      JsonWriter to = new JsonWriter(text);
      to.setHtmlSafe(false);
      value(to, "", object);
    } catch (IOException impossible) { // a StringWriter
      throw new AssertionError(impossible);
    }
    return utf8(text.getBuffer());
  }

  private static void value(JsonWriter to, String place, Object value) throws IOException {
    if (value instanceof ClosedRecord) value = ((ClosedRecord) value).fields;
    if (value instanceof Code) value = ((Code) value).value();
    if (value == null) {
      to.nullValue();
    } else if (value instanceof String) {
      to.value((String) value);
    } else if (value instanceof Boolean) {
      to.value((Boolean) value);
    } else if (value instanceof Number) {
      number(to, place, (Number) value);
    } else if (value instanceof Map) {
      to.beginObject();
      for (Map.Entry<?, ?> one : ((Map<?, ?>) value).entrySet()) {
        if (!(one.getKey() instanceof String))
          throw new IllegalArgumentException(shown(place) + " has a name that is no string");
        String name = (String) one.getKey();
        to.name(name);
        value(to, place + "/" + name.replace("~", "~0").replace("/", "~1"), one.getValue());
      }
      to.endObject();
    } else if (value instanceof Iterable) {
      to.beginArray();
      int index = 0;
      for (Object one : (Iterable<?>) value) value(to, place + "/" + index++, one);
      to.endArray();
    } else {
      throw new IllegalArgumentException(
          shown(place) + " is a " + value.getClass().getName() + ", which JSON does not have");
    }
  }

  private static void number(JsonWriter to, String place, Number value) throws IOException {
    if (value instanceof Double || value instanceof Float) {
      double real = value.doubleValue();
      if (Double.isNaN(real) || Double.isInfinite(real))
        throw new IllegalArgumentException(shown(place) + " is no finite number");
      to.value(value); // a Float with its own few digits
    } else if (value instanceof BigDecimal || value instanceof BigInteger) {
      to.value(value); // the library says whether a double holds it
    } else {
      to.value(value.longValue());
    }
  }

  private static String shown(String place) { return place.isEmpty() ? "the request" : place; }

  /**
   * The UTF-8 bytes. Half a surrogate pair, which UTF-8 cannot hold, becomes an escape, so that the
   * library refuses it and names the field: Java's own encoder would put a question mark.
   */
  private static byte[] utf8(CharSequence text) {
    Matcher half = HALF_A_PAIR.matcher(text);
    StringBuffer escaped = new StringBuffer();
    while (half.find())
      half.appendReplacement(escaped, "\\\\u" + Integer.toHexString(half.group().charAt(0)));
    return half.appendTail(escaped).toString().getBytes(StandardCharsets.UTF_8);
  }

  /** The object in a part of the bytes. */
  static Map<String, Object> read(byte[] bytes, int from) {
    String text = new String(bytes, from, bytes.length - from, StandardCharsets.UTF_8);
    try {
      return object(new JsonReader(new StringReader(text)));
    } catch (IOException | IllegalStateException broken) {
      throw new IllegalArgumentException("the library's reply is no JSON object", broken);
    }
  }

  private static Map<String, Object> object(JsonReader source) throws IOException {
    Map<String, Object> object = new LinkedHashMap<>();
    source.beginObject();
    while (source.hasNext()) object.put(source.nextName(), value(source));
    source.endObject();
    return object;
  }

  private static Object value(JsonReader source) throws IOException {
    JsonToken next = source.peek();
    switch (next) {
      case BEGIN_OBJECT:
        return object(source);
      case BEGIN_ARRAY:
        List<Object> list = new ArrayList<>();
        source.beginArray();
        while (source.hasNext()) list.add(value(source));
        source.endArray();
        return list;
      case STRING:
        return source.nextString();
      case BOOLEAN:
        return source.nextBoolean();
      case NULL:
        source.nextNull();
        return null;
      case NUMBER:
        return number(source.nextString());
      default:
        throw new IOException("unexpected " + next);
    }
  }

  /** An integer is a Long, as the library's lie within 53 bits; another number is a Double. */
  private static Object number(String digits) {
    boolean real = digits.contains(".") || digits.contains("e") || digits.contains("E");
    if (real) return Double.valueOf(digits);
    return Long.valueOf(digits);
  }
}
