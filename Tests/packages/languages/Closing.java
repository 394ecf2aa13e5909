import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;

/** Makes mistakes, and closes a handle while another thread waits for news. */
public final class Closing {
  private interface Mistake {
    void make();
  }

  private static JsonObject json(String text) {
    return JsonParser.parseString(text.replace('\'', '"')).getAsJsonObject();
  }

  private static void refused(Mistake mistake) {
    try {
      mistake.make();
      System.out.println("not refused");
    } catch (Holdfast.Refused refused) {
      JsonElement field = refused.error.get("field");
      String where = field.isJsonNull() ? "" : " " + field.getAsString();
      System.out.println("refused: " + refused.error.get("code").getAsString() + where);
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    JsonObject config = json("{'keystore': {'kind': 'file'}, 'policy': {'biometric': 'off'}}");
    config.addProperty("data_dir", arguments[0]);
    config.add("auth_methods", JsonParser.parseString("[{\"id\":\"p\",\"flow\":\"password\"}]"));
    refused(() -> Holdfast.open(config));
    config.add("backend", json("{'url': 'http://127.0.0.1:9', 'api_key': 'k'}"));
    config.add("http", json("{'connections': 0}"));
    refused(() -> Holdfast.open(config));
    config.remove("http");
    Holdfast app = Holdfast.open(config);
    app.call("session_resume", new JsonObject());
    refused(() -> app.call("network_report", json("{'online': 'yes'}")));
    Thread follower =
        new Thread(
            () -> {
              while (app.next() != null) {
                Thread.yield();
              }
              System.out.println("no more news");
            });
    follower.start();
    Thread closer = new Thread(app::close);
    closer.start();
    closer.join();
    follower.join();
    refused(() -> app.call("queue_list", new JsonObject()));
    app.close();
    System.out.println("closed again");
  }
}
