import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.Objects;

/**
 * A whole app in six steps: sign in, choose, queue offline, restart, search, log out.
 *
 * <p>HOLDFAST_URL=... HOLDFAST_KEY=... HOLDFAST_PASSWORD=... java Visits [E-MAIL]
 */
public final class Visits implements AutoCloseable {
  private static final String CONFIG =
      "{'data_dir': 'app-data', 'backend': {'url': %s, 'api_key': %s},"
          + " 'template': 'volunteers',"
          + " 'development': true}"; // or keystore: secret_service, the desktop's keyring

  private final Holdfast app;
  private JsonObject shown; // what the user sees

  private Visits() {
    app = Holdfast.open(json(CONFIG, System.getenv("HOLDFAST_URL"), System.getenv("HOLDFAST_KEY")));
    draw(app.screen());
  }

  /** JSON with values in the places of %s. */
  private static JsonObject json(String text, Object... values) {
    Object[] written = new Object[values.length];
    for (int i = 0; i < values.length; i++) written[i] = new Gson().toJson(values[i]);
    return JsonParser.parseString(String.format(text.replace('\'', '"'), written)).getAsJsonObject();
  }

  private static String text(JsonElement object, String name) {
    return object.getAsJsonObject().get(name).getAsString();
  }

  private boolean sees(String screen) {
    return text(shown, "screen").equals(screen);
  }

  private void draw(JsonObject screen) {
    shown = screen;
    if (sees("wait")) return; // another screen follows
    JsonElement message = screen.get("message");
    String said = message.isJsonNull() ? "" : " " + text(message, "text");
    System.out.println("screen: " + text(screen, "screen") + said);
  }

  /** Shows one thing that comes. An app with a window does this on a thread of its own. */
  private JsonObject next() {
    JsonObject thing = Objects.requireNonNull(app.next(), "the app was closed");
    if (thing.has("screen")) draw(thing.getAsJsonObject("screen"));
    if (thing.has("notice")) // such as: the server has refused the visit
      System.out.println("notice: " + text(thing.get("notice"), "text"));
    return thing;
  }

  /** Makes a call that leads to a screen, and waits for it. */
  private void act(String operation, JsonObject request) {
    app.call(operation, request);
    while (!next().has("screen") || sees("wait")) {}
  }

  /** Signs in, chooses an organisation, and queues a visit without a network: its id. */
  private String begin(String email) {
    String password = System.getenv("HOLDFAST_PASSWORD");
    if (sees("sign_in"))
      act("sign_in_complete", json("{'email': %s, 'password': %s}", email, password));
    for (JsonElement org : shown.getAsJsonArray("orgs"))
      if (sees("select_org") && text(org, "status").equals("active"))
        act("org_select", json("{'org_id': %s}", text(org, "org_id")));
    if (!sees("home"))
      throw new IllegalStateException("the user is not in: " + text(shown, "screen"));
    app.call("network_report", json("{'online': false}"));
    String visit = "{'kind': 'activity', 'payload': {'type': 'visit', 'minutes': 45}}";
    return text(app.call("queue_add", json(visit)), "id"); // on disk: a crash does not lose it
  }

  /** Waits until the visit is sent and the contacts are there, searches, and logs out. */
  private void finish(String id) {
    String state;
    JsonObject found;
    do {
      next();
      state = text(app.call("queue_get", json("{'id': %s}", id)), "state");
      found = app.call("contact_search", json("{'query': 'dag', 'limit': 3}"));
    } while (!state.matches("stored|parked") || found.get("as_of_ms").isJsonNull());
    System.out.println("the visit: " + state);
    System.out.print("contacts: " + found.get("total"));
    for (JsonElement one : found.getAsJsonArray("contacts"))
      System.out.print(", " + text(one, "name"));
    System.out.println();
    act("session_logout", new JsonObject()); // refused while something is unsent
  }

  @Override
  public void close() {
    app.close();
  }

  public static void main(String[] given) {
    String id;
    try (Visits visits = new Visits()) {
      id = visits.begin(given.length > 0 ? given[0] : "mentor@example.org");
      System.out.println("queued: " + id);
    }
    try (Visits again = new Visits()) { // without a sign-in
      again.finish(id);
    }
  }
}
