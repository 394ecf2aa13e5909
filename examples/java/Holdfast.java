import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.util.Map;

/** An open handle, and its first screen. Any thread may use it, and close it while others do. */
public record Holdfast(long app, JsonObject screen) implements AutoCloseable {
  interface Driver extends Library {
    Driver LIBRARY =
        Native.load("holdfast_http", Driver.class, Map.of(OPTION_STRING_ENCODING, "UTF-8"));

    Pointer holdfast_http_call(long app, String operation, String request);

    void holdfast_http_free(Pointer text);
  }

  /** Why a call was refused: an object of code, message, field, retryable and detail. */
  public static final class Refused extends RuntimeException {
    public final JsonObject error;

    Refused(JsonObject error) { super(error.toString()); this.error = error; }
  }

  /** Opens a handle. Its driver sends the requests from now on. */
  public static Holdfast open(JsonObject config) {
    JsonObject opened = new Holdfast(0, null).call("open", config);
    return new Holdfast(opened.get("app").getAsLong(), opened.getAsJsonObject("screen"));
  }

  /** Makes a call by its name. */
  public JsonObject call(String operation, JsonObject request) {
    Pointer text = Driver.LIBRARY.holdfast_http_call(app, operation, request.toString());
    JsonObject reply = JsonParser.parseString(text.getString(0, "UTF-8")).getAsJsonObject();
    Driver.LIBRARY.holdfast_http_free(text);
    if (reply.has("error")) throw new Refused(reply.getAsJsonObject("error"));
    return reply;
  }

  /** Waits for the next thing, and acknowledges the one before. Null: the handle is closed. */
  public JsonObject next() {
    try {
      return call("next", new JsonObject());
    } catch (Refused refused) {
      if (refused.error.get("code").getAsString().equals("handle.closed")) return null;
      throw refused;
    }
  }

  @Override
  public void close() { call("close", new JsonObject()); }
}
