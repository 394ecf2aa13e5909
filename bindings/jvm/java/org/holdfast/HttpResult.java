package org.holdfast;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.holdfast.Types.*;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

/** What became of a request: a response, or the reason why there is none. */
public final class HttpResult {
  /** The most bytes of a body that a sender should take. */
  public static final int BODY_LIMIT = 8 << 20;

  private final int status;
  private final Map<String, String> headers;
  private final String body;
  private final TransportError error;

  private HttpResult(int status, Map<String, String> headers, String body, TransportError error) {
    this.status = status;
    this.headers = headers;
    this.body = body;
    this.error = error;
  }

  /** A response; headers of equal names are joined, and a name that is null is left out. */
  @NotNull
  public static HttpResult response(
      int status, @NotNull Map<String, List<String>> headers, @NotNull byte[] body) {
    Map<String, String> joined = new LinkedHashMap<>();
    for (Map.Entry<String, List<String>> one : headers.entrySet()) {
      if (one.getKey() == null) continue; // the status line of HttpURLConnection
      StringBuilder values = new StringBuilder();
      for (String value : one.getValue()) {
        if (values.length() > 0) values.append(", ");
        values.append(value);
      }
      joined.put(one.getKey().toLowerCase(Locale.ROOT), values.toString());
    }
    return new HttpResult(status, joined, text(body), null);
  }

  /** No response. */
  @NotNull
  public static HttpResult failed(@NotNull TransportError error) {
    return new HttpResult(0, null, null, error);
  }

  /** The reason why there is no response; null: there is one. */
  @Nullable
  public TransportError getError() {
    return error;
  }

  /** The request of {@code complete}. */
  CompleteRequest completing(long id) {
    if (error != null) return new HttpFailure(id, error);
    return new HttpAnswer(id, status).headers(headers).body(body);
  }

  /** The body as text; null: it is not UTF-8, or holds a NUL. */
  private static String text(byte[] body) {
    for (byte one : body) if (one == 0) return null;
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
    } catch (CharacterCodingException broken) {
      return null;
    }
  }
}
