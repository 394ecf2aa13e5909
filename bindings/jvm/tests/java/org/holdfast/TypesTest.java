package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.lang.reflect.Method;
import java.nio.file.*;
import java.util.*;
import org.holdfast.Types.*;
import org.junit.jupiter.api.Test;

/** The generated types: they take what a later library sends, and send what this one takes. */
class TypesTest {
  @SuppressWarnings("unchecked")
  private static Map<String, Object> map(Object value) { return (Map<String, Object>) value; }

  private static Map<String, Object> decision() {
    Map<String, Object> fields = new LinkedHashMap<>(Map.of("screen", "home"));
    fields.put("can_unlock", false);
    for (String name : List.of("methods", "orgs", "banners")) fields.put(name, List.of());
    return fields;
  }

  /** Every getter of every reply in the schema's examples answers. */
  @Test
  void every_example_of_a_reply_is_read() throws Exception {
    Map<String, Object> schema = Json.read(Files.readAllBytes(Path.of("include/holdfast.schema.json")), 0);
    int read = 0;
    for (Map.Entry<String, Object> one : map(schema.get("x-operations")).entrySet()) {
      Object reference = map(map(one.getValue()).get("reply")).get("$ref");
      String name = ((String) reference).replace("#/$defs/", "org.holdfast.Types$");
      for (Object given : (List<?>) map(one.getValue()).getOrDefault("examples", List.of())) {
        Object value = Class.forName(name).getMethod("of", Map.class).invoke(null, map(given).get("reply"));
        for (Method method : value.getClass().getMethods())
          if (method.getName().startsWith("get") && method.getParameterCount() == 0)
            method.invoke(value);
        assertEquals(map(given).get("reply"), value.getClass().getMethod("toMap").invoke(value));
        read++;
      }
    }
    assertTrue(read > 30, "read " + read);
  }

  @Test
  void a_later_code_is_kept() {
    Map<String, Object> later = decision();
    later.put("screen", "hologram");
    later.put("colour", "blue");
    Decision decision = Decision.of(later);
    assertEquals("hologram", decision.getScreen().value());
    assertEquals(Screen.Known.UNKNOWN, decision.getScreen().known());
    assertEquals(Screen.of("hologram"), decision.getScreen());
    assertNotEquals(Screen.HOME, decision.getScreen());
    assertEquals("blue", decision.toMap().get("colour"));
  }

  @Test
  void a_later_thing_and_a_later_notice_are_kept() {
    NextReply later = NextReply.of(Map.of("hologram", Map.of("colour", "blue")));
    assertInstanceOf(NextReply.Unknown.class, later);
    assertEquals(Map.of("colour", "blue"), later.toMap().get("hologram"));
    Map<String, Object> told = Map.of("type", "hologram", "reason", "light", "text", "There is light.");
    NextNotice notice = assertInstanceOf(NextNotice.class, NextReply.of(Map.of("notice", told)));
    assertInstanceOf(OtherNotice.class, notice.getNotice());
    assertEquals("There is light.", notice.getNotice().getText());
    Map<String, Object> nothing = Collections.singletonMap("wake_in_ms", null);
    assertNull(assertInstanceOf(NextWake.class, NextReply.of(nothing)).getWakeInMs());
  }

  @Test
  void a_later_kind_of_reply_is_kept() {
    SignInBeginReply later = SignInBeginReply.of(Map.of("scan", "..."));
    assertInstanceOf(SignInBeginReply.Unknown.class, later);
    assertEquals("...", later.toMap().get("scan"));
    assertInstanceOf(NeedsPassword.class, SignInBeginReply.of(Map.of("needs", List.of("email", "password"))));
  }

  @Test
  void the_columns_of_a_contact_are_kept() {
    Contact contact = Contact.of(Map.of("id", "i", "name", "Kari", "municipality", "Oslo"));
    assertEquals(Map.of("municipality", "Oslo"), contact.getColumns());
  }

  @Test
  void a_reply_without_a_required_field_is_refused_by_name() {
    Map<String, Object> broken = decision();
    broken.remove("screen");
    var refused = assertThrows(IllegalArgumentException.class, () -> Decision.of(broken));
    assertEquals("Decision.screen is missing", refused.getMessage());
    broken.put("screen", 1L);
    refused = assertThrows(IllegalArgumentException.class, () -> Decision.of(broken));
    assertEquals("Decision.screen has another type", refused.getMessage());
  }

  @Test
  void a_request_has_the_fields_that_were_set() {
    QueueAddRequest request = new QueueAddRequest("activity", Map.of("minutes", 45));
    assertEquals(Map.of("kind", "activity", "payload", Map.of("minutes", 45L)), request.toMap());
    assertEquals(new QueueAddRequest("activity", Map.of("minutes", 45)), request);
    request.occurredAtMs(1L).dependsOn(List.of("a"));
    assertEquals(List.of("a"), request.toMap().get("depends_on"));
    request.occurredAtMs(null);
    assertFalse(request.toMap().containsKey("occurred_at_ms"));
    assertThrows(NullPointerException.class, () -> new QueueAddRequest(null, Map.of()));
    Backend none = new Backend("https://x.test", "k").memberships(null);
    assertNull(none.toMap().getOrDefault("memberships", "absent"), "null is not the same as absence");
  }

  /** A log that prints objects must not hold tokens, passwords or people's data. */
  @Test
  void texts_are_not_printed() {
    assertFalse(new SignInPassword("kari@example.org", "hemmelig").toString().contains("hemmelig"));
    String printed = SendersTest.request("https://x.test/secret", "POST", "{\"token\":\"secret\"}", 1).toString();
    assertFalse(printed.contains("secret"), printed);
    assertTrue(printed.contains("purpose=upload"), printed);
    assertFalse(Contact.of(Map.of("id", "i", "name", "Kari")).toString().contains("Kari"));
  }
}
