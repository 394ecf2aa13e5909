import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.Objects;

/**
 * Signs in, chooses an organisation, queues a visit offline, starts again without a sign-in, searches,
 * and logs out.
 *
 * <p>Arguments: FOLDER URL KEY E-MAIL. The password comes from HOLDFAST_PASSWORD.
 */
public final class Visits implements AutoCloseable {
  private final Holdfast app;
  private JsonObject screen; // what the user sees

  private Visits(JsonObject config) {
    app = Holdfast.open(config);
    draw(app.screen());
  }

  /** JSON with values in the places of %s. */
  private static JsonObject json(String text, Object... values) {
    Object[] written = new Object[values.length];
    for (int i = 0; i < values.length; i++) written[i] = new com.google.gson.Gson().toJson(values[i]);
    return JsonParser.parseString(String.format(text.replace('\'', '"'), written)).getAsJsonObject();
  }

  private static String text(JsonObject object, String name) {
    return object.get(name).getAsString();
  }

  private void draw(JsonObject decision) {
    screen = decision;
    System.out.println("screen: " + text(screen, "screen") + " (" + text(screen, "reason") + ")");
    if (!screen.get("message").isJsonNull())
      System.out.println("message: " + text(screen.getAsJsonObject("message"), "text"));
  }

  /** Shows the next thing. An app with a window does so on a thread of its own. */
  private JsonObject showNext() {
    JsonObject thing = Objects.requireNonNull(app.next(), "the app was closed");
    if (thing.has("screen")) draw(thing.getAsJsonObject("screen"));
    if (thing.has("notice"))
      System.out.println("notice: " + text(thing.getAsJsonObject("notice"), "text"));
    return thing;
  }

  /** Makes a call that leads to a screen, and shows it. */
  private JsonObject decide(String operation, JsonObject request) {
    JsonObject reply = app.call(operation, request);
    while (!showNext().has("screen") || text(screen, "screen").equals("wait")) {}
    return reply;
  }

  /** Leads to the app's home; without a password, by the session on the disk alone. */
  private void enter(String email, String password) {
    if (text(screen, "screen").equals("sign_in") && password != null)
      decide("sign_in_complete", json("{'email': %s, 'password': %s}", email, password));
    if (text(screen, "screen").equals("select_org")) {
      JsonObject first = screen.getAsJsonArray("orgs").get(0).getAsJsonObject();
      System.out.println("organisation: " + text(first, "name"));
      decide("org_select", json("{'org_id': %s}", text(first, "org_id")));
    }
    if (!text(screen, "screen").equals("home"))
      throw new IllegalStateException("the user is not in: " + text(screen, "screen"));
  }

  private String queue(int minutes) {
    JsonObject visit = json("{'type': 'visit', 'minutes': %s}", minutes);
    return text(app.call("queue_add", json("{'kind': 'activity', 'payload': %s}", visit)), "id");
  }

  /** Waits until the server has stored the item, or the library has parked it. */
  private void deliver(String id) {
    JsonObject which = json("{'id': %s}", id);
    String state;
    while (!(state = text(app.call("queue_get", which), "state")).matches("stored|parked")) showNext();
    System.out.println(state + ": " + id);
  }

  private void search(String words) {
    JsonObject query = json("{'query': %s}", words);
    JsonObject found = app.call("contact_search", query);
    while (found.get("as_of_ms").isJsonNull()) { // before the first pull nothing is found
      showNext();
      found = app.call("contact_search", query);
    }
    for (JsonElement each : found.getAsJsonArray("contacts"))
      System.out.println("found: " + text(each.getAsJsonObject(), "name"));
  }

  @Override
  public void close() {
    app.close();
  }

  public static void main(String[] given) {
    // The keys are in the desktop's keyring, or, for servers and tests, in files.
    String kind = System.getenv().getOrDefault("HOLDFAST_KEYSTORE", "secret_service");
    JsonObject keystore = json(kind.equals("file") ? "{'kind': 'file'}" : "{'kind': %s, 'name': 'com.example.visits'}", kind);
    JsonObject config =
        json("{'data_dir': %s, 'backend': {'url': %s, 'api_key': %s}, 'keystore': %s,"
                + " 'auth_methods': [{'id': 'password', 'flow': 'password'}],"
                + " 'policy': {'biometric': 'off'}}",
            given[0], given[1], given[2], keystore);
    String id;
    try (Visits visits = new Visits(config)) {
      visits.enter(given[3], System.getenv("HOLDFAST_PASSWORD"));
      visits.app.call("network_set", json("{'online': false}"));
      id = visits.queue(45); // on disk when it returns
      System.out.println("queued: " + id);
    }
    try (Visits visits = new Visits(config)) { // as after a restart
      visits.enter(null, null);
      visits.deliver(id);
      visits.search("dag");
      JsonObject left = visits.decide("session_logout", new JsonObject());
      System.out.println("unsent: " + left.get("unsent"));
    }
  }
}
