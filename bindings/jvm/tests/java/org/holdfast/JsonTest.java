package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.nio.charset.StandardCharsets;
import java.util.*;
import org.holdfast.Types.Screen;
import org.junit.jupiter.api.Test;

/** JSON. */
class JsonTest {
  private static String written(Object value) {
    byte[] bytes = Json.write(Collections.singletonMap("v", value));
    String text = new String(bytes, StandardCharsets.UTF_8);
    return text.substring(5, text.length() - 1);
  }

  private static Object read(String value) {
    return Json.read(("{\"v\":" + value + "}").getBytes(StandardCharsets.UTF_8), 0).get("v");
  }

  @Test
  void values_are_written_as_they_are() {
    assertEquals("null", written(null));
    assertEquals("[1,-9007199254740992,0.5,true]", written(Arrays.asList(1, -(1L << 53), 0.5, true)));
    assertEquals("0.1", written(0.1f));
    assertEquals("12345678901234567890", written(new java.math.BigInteger("12345678901234567890")));
    assertEquals("\"æ\ud83d\ude00\\u0000\\n\\\"</\"", written("æ\ud83d\ude00\u0000\n\"</"));
    assertEquals("\"home\"", written(Screen.HOME));
  }

  @Test
  void what_json_does_not_have_is_refused_with_its_place() {
    Object date = Map.of("a/b", List.of(new Date()));
    assertEquals("/v/a~1b/0 is a java.util.Date, which JSON does not have", refusal(date));
    assertEquals("/v is no finite number", refusal(Double.NaN));
    assertEquals("/v has a name that is no string", refusal(Map.of(1, 1)));
  }

  private static String refusal(Object value) {
    return assertThrows(IllegalArgumentException.class, () -> written(value)).getMessage();
  }

  @Test
  void half_a_surrogate_pair_becomes_an_escape() {
    assertEquals("\"a\\ud83dz\\ude00\"", written("a\ud83dz\ude00"));
  }

  @Test
  void numbers_keep_their_kind() {
    assertEquals(9007199254740992L, read("9007199254740992"));
    assertEquals(1.5, read("1.5"));
    assertEquals(1e300, read("1e300"));
    Random random = new Random(1);
    for (int i = 0; i < 10_000; i++) {
      double value = Double.longBitsToDouble(random.nextLong());
      if (Double.isNaN(value) || Double.isInfinite(value)) continue;
      assertEquals(value, read(written(value)));
    }
  }
}
