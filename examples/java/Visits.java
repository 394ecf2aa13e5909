import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;

/**
 * Signs in, registers three visits, locks, signs in again, and shows what the library says.
 *
 * <p>Arguments: FOLDER URL KEY E-MAIL [logout]. The password comes from HOLDFAST_PASSWORD; a second
 * start needs none, because the session is on the disk.
 */
public final class Visits {
  private final Holdfast app;
  private JsonObject screen = json("{\"number\": 0}"); // what the user sees

  private Visits(Holdfast app) {
    this.app = app;
  }

  private static JsonObject json(String text) {
    return JsonParser.parseString(text).getAsJsonObject();
  }

  private static JsonObject json(String name, String value) {
    JsonObject object = new JsonObject();
    object.addProperty(name, value);
    return object;
  }

  private static String text(JsonObject object, String name) {
    return object.get(name).getAsString();
  }

  /** Shows a decision, unless the screen shows a newer one. */
  private void draw(JsonObject decision) {
    if (decision.get("number").getAsLong() <= screen.get("number").getAsLong()) {
      return;
    }
    screen = decision;
    System.out.println("screen: " + text(screen, "screen") + " (" + text(screen, "reason") + ")");
    if (!screen.get("message").isJsonNull()) {
      System.out.println("message: " + text(screen.getAsJsonObject("message"), "text"));
    }
  }

  /**
   * Waits for an event, and handles it. The next call acknowledges it. An app with a window follows
   * the events on a thread of its own.
   */
  private void drawNext() {
    JsonObject event = app.next();
    if (event == null) {
      throw new IllegalStateException("the app was closed");
    }
    System.out.println("event: " + text(event, "type"));
    if (event.has("decision")) {
      draw(event.getAsJsonObject("decision"));
    }
  }

  private boolean sees(String name) {
    return text(screen, "screen").equals(name);
  }

  /** Makes a call that replies a decision, and waits until one asks for something. */
  private void decide(String operation, JsonObject request) {
    draw(app.call(operation, request));
    while (sees("wait")) {
      drawNext();
    }
  }

  /** Leads to the app's home. */
  private void enter(String email) {
    decide("session_resume", new JsonObject());
    if (sees("sign_in")) {
      JsonObject credentials = json("email", email);
      credentials.addProperty("password", System.getenv("HOLDFAST_PASSWORD"));
      decide("sign_in_complete", credentials);
    }
    if (sees("select_org")) {
      for (JsonElement each : screen.getAsJsonArray("orgs")) {
        JsonObject org = each.getAsJsonObject();
        if (text(org, "status").equals("active")) {
          System.out.println("organisation: " + text(org, "name"));
          decide("org_select", json("org_id", text(org, "org_id")));
          break;
        }
      }
    }
    if (!sees("home")) {
      throw new IllegalStateException("the user is not in: " + text(screen, "screen"));
    }
  }

  /** Queues three visits, and waits until the server has stored or refused them. */
  private void register() {
    List<String> queued = new ArrayList<>();
    for (int minutes = 15; minutes <= 45; minutes += 15) {
      JsonObject visit = json("{\"kind\": \"activity\", \"payload\": {\"type\": \"visit\"}}");
      visit.getAsJsonObject("payload").addProperty("minutes", minutes);
      visit.addProperty("occurred_at_ms", System.currentTimeMillis());
      queued.add(text(app.call("queue_add", visit), "id"));
    }
    for (String id : queued) {
      String state = text(app.call("queue_get", json("id", id)), "state");
      while (!state.equals("stored") && !state.equals("parked")) {
        drawNext();
        state = text(app.call("queue_get", json("id", id)), "state");
      }
      System.out.println(state + ": " + id);
    }
  }

  /** Ends the session. */
  private void logout() {
    JsonObject left = app.call("session_logout", new JsonObject());
    System.out.println("unsent: " + left.get("unsent"));
    draw(left.getAsJsonObject("decision"));
  }

  /** Where the keys are: in the desktop's keyring, or, for servers and tests, in files. */
  private static JsonObject keystore() {
    String kind = System.getenv().getOrDefault("HOLDFAST_KEYSTORE", "secret_service");
    JsonObject keystore = json("kind", kind);
    if (kind.equals("secret_service")) {
      keystore.addProperty("name", "com.example.visits");
    }
    return keystore;
  }

  public static void main(String[] arguments) {
    JsonObject backend = json("url", arguments[1]);
    backend.addProperty("api_key", arguments[2]);
    JsonObject config = json("data_dir", arguments[0]);
    config.add("backend", backend);
    config.add("keystore", keystore());
    config.add("policy", json("biometric", "off"));
    JsonArray methods = new JsonArray();
    methods.add(json("{\"id\": \"password\", \"flow\": \"password\"}"));
    config.add("auth_methods", methods);
    try (Holdfast app = Holdfast.open(config)) {
      Visits visits = new Visits(app);
      visits.enter(arguments[3]);
      visits.register();
      if (arguments.length > 4) {
        visits.logout();
      } else {
        visits.decide("session_lock", new JsonObject());
        visits.enter(arguments[3]);
      }
    }
  }
}
