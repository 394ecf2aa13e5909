package org.holdfast;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.holdfast.Types.*;

/** The local backend that beside_backend.py has started, and its control endpoint (Tests/server). */
public final class Server {
  public static final String URL = System.getenv("HOLDFAST_BACKEND");
  public static final String KEY = System.getenv("HOLDFAST_KEY");

  /** The user with one organisation. */
  public static final SignInPassword SOLO = new SignInPassword("solo@example.org", "holdfast-demo");

  private static final HttpClient CLIENT = HttpClient.newHttpClient();

  private Server() {}

  /** A configuration for this backend: sign-in with a password, no biometrics, keys as files. */
  public static Config config(java.nio.file.Path data) {
    return new Config(data.toString(), new Backend(URL, KEY))
        .template(ConfigTemplate.VOLUNTEERS)
        .policy(new Policy().biometric(PolicyBiometric.OFF))
        .keystore(new KeyStoreChoice(KeyStoreChoiceKind.FILE))
        .locale("en");
  }

  /** A visit to queue. */
  public static QueueAddRequest visit(int minutes) {
    return new QueueAddRequest("activity", Map.of("type", "visit", "minutes", minutes))
        .occurredAtMs(System.currentTimeMillis());
  }

  /** The number of activities of the user with this e-mail address. */
  public static long activities(String email) throws IOException, InterruptedException {
    String query = "select count(*) as n from activities a join auth.users u on u.id = a.user_id where u.email = %s";
    String rows = control("POST", "/sql", Map.of("query", query, "parameters", List.of(email)));
    byte[] object = ("{\"rows\":" + rows + "}").getBytes(StandardCharsets.UTF_8);
    return (Long) ((Map<?, ?>) ((List<?>) Json.read(object, 0).get("rows")).get(0)).get("n");
  }

  public static String control(String method, String path, Map<String, ?> body)
      throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(URL + "/_control" + path))
            .version(HttpClient.Version.HTTP_1_1)
            .method(method, HttpRequest.BodyPublishers.ofByteArray(Json.write(body)))
            .build();
    HttpResponse<String> response = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
    if (response.statusCode() != 200) throw new IOException(response.body());
    return response.body();
  }
}
