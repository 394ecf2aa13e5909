import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.util.Map;

/** An open handle. Any thread may use it, and close it while others use it. */
public record Holdfast(long app) implements AutoCloseable {
  interface Driver extends Library {
    Driver LIBRARY =
        Native.load("holdfast_http", Driver.class, Map.of(OPTION_STRING_ENCODING, "UTF-8"));

    Pointer holdfast_http_call(long app, String operation, String request);

    void holdfast_http_free(Pointer text);
  }

  /** Why a call was refused: an object of code, message, field, retryable and detail. */
  public static final class Refused extends RuntimeException {
    public final JsonObject error;

    Refused(JsonObject error) {
      super(error.toString());
      this.error = error;
    }
  }

  /** Opens a handle. Its driver sends the requests from now on. */
  public static Holdfast open(JsonObject config) {
    return new Holdfast(new Holdfast(0).call("open", config).get("app").getAsLong());
  }

  /** Makes a call by its name. */
  public JsonObject call(String operation, JsonObject request) {
    Pointer text = Driver.LIBRARY.holdfast_http_call(app, operation, request.toString());
    JsonObject reply = JsonParser.parseString(text.getString(0, "UTF-8")).getAsJsonObject();
    Driver.LIBRARY.holdfast_http_free(text);
    if (reply.has("error")) throw new Refused(reply.getAsJsonObject("error"));
    return reply;
  }

  /** Waits for an event, and acknowledges the one before. Null: the handle is closed. */
  public JsonObject next() {
    JsonObject reply = call("event_next", new JsonObject());
    return reply.get("closed").getAsBoolean() ? null : reply.getAsJsonObject("event");
  }

  @Override
  public void close() {
    call("close", new JsonObject());
  }
}
