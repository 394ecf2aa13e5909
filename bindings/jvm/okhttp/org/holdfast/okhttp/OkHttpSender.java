package org.holdfast.okhttp;

import java.io.IOException;
import java.net.ProtocolException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.*;
import okhttp3.*;
import okio.BufferedSource;
import org.holdfast.Http;
import org.holdfast.HttpSender;
import org.holdfast.Types.CompleteRequest;
import org.holdfast.Types.HttpRequest;
import org.jetbrains.annotations.NotNull;

/**
 * Sends with OkHttp (3.13 and later), on Android and elsewhere. No redirects, second tries, cookies
 * or cache, whatever the client that it is given has; {@code timeout_ms} limits the whole exchange.
 * A response over {@link Http#BODY_LIMIT} is refused.
 */
public final class OkHttpSender implements HttpSender {
  private final OkHttpClient client;

  /** With a client of its own. */
  public OkHttpSender() { this(new OkHttpClient()); }

  /**
   * With the connections, the certificates and the proxy of a client. Its interceptors stay: one that
   * logs or repeats requests must leave these alone.
   */
  public OkHttpSender(@NotNull OkHttpClient shared) {
    client =
        shared
            .newBuilder()
            .dispatcher(new Dispatcher(Executors.newCachedThreadPool(OkHttpSender::daemon)))
            .followRedirects(false)
            .followSslRedirects(false)
            .retryOnConnectionFailure(false)
            .cookieJar(CookieJar.NO_COOKIES)
            .cache(null)
            .connectTimeout(0, TimeUnit.MILLISECONDS)
            .readTimeout(0, TimeUnit.MILLISECONDS)
            .writeTimeout(0, TimeUnit.MILLISECONDS)
            .build();
  }

  @Override
  @NotNull
  public CompleteRequest send(@NotNull HttpRequest request) throws Exception {
    OkHttpClient limited = client.newBuilder().callTimeout(request.getTimeoutMs(), TimeUnit.MILLISECONDS).build();
    Call call = limited.newCall(converted(request));
    CompletableFuture<CompleteRequest> result = new CompletableFuture<>();
    call.enqueue(new Callback() {
      @Override
      public void onResponse(Call call, Response response) {
        try (Response closing = response) {
          Headers headers = closing.headers();
          byte[] body = bytes(closing.body());
          result.complete(Http.answer(request, closing.code(), headers.toMultimap(), body));
        } catch (Throwable failure) { // else nobody would learn of it
          result.completeExceptionally(failure);
        }
      }

      @Override
      public void onFailure(Call call, IOException failure) {
        result.completeExceptionally(failure);
      }
    });
    try {
      return result.get();
    } finally {
      call.cancel(); // ends the call if this thread was interrupted; a socket would not notice
    }
  }

  /** OkHttp's own threads keep a program alive for a minute. */
  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "holdfast-okhttp");
    thread.setDaemon(true);
    return thread;
  }

  private static Request converted(HttpRequest request) {
    Request.Builder made = new Request.Builder().url(request.getUrl());
    MediaType type = null;
    for (Map.Entry<String, String> one : request.getHeaders().entrySet()) {
      made.header(one.getKey(), one.getValue());
      if (one.getKey().equalsIgnoreCase("content-type")) type = MediaType.parse(one.getValue());
    }
    String body = request.getBody();
    byte[] bytes = body == null ? null : body.getBytes(StandardCharsets.UTF_8);
    String method = request.getMethod().value();
    // OkHttp insists on a body for POST.
    boolean empty = bytes == null && !method.equals("GET") && !method.equals("HEAD");
    if (empty) bytes = new byte[0];
    return made.method(method, bytes == null ? null : RequestBody.create(type, bytes)).build();
  }

  private static byte[] bytes(ResponseBody body) throws IOException {
    BufferedSource source = body.source();
    if (source.request(Http.BODY_LIMIT + 1L)) throw new ProtocolException("the response is over the limit");
    return source.readByteArray();
  }
}
