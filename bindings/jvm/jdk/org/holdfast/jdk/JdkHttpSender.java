package org.holdfast.jdk;

import java.io.ByteArrayOutputStream;
import java.net.ProtocolException;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpRequest.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;
import org.holdfast.Http;
import org.holdfast.HttpSender;
import org.holdfast.Types.*;
import org.holdfast.Types.HttpRequest;
import org.jetbrains.annotations.NotNull;

/**
 * Sends with the JDK's client (Java 11 and later, not on Android). No redirects, cookies or cache.
 * The client sends only GET again when a kept connection breaks; {@code timeout_ms} limits the whole
 * exchange, and a response over {@link Http#BODY_LIMIT} is refused.
 */
public final class JdkHttpSender implements HttpSender {
  private final HttpClient client;

  /** With the system's certificates and proxies. */
  public JdkHttpSender() {
    this(HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NEVER).build());
  }

  /** With a client of the host's, which follows no redirects and has no cookies. */
  public JdkHttpSender(@NotNull HttpClient client) {
    if (client.followRedirects() != HttpClient.Redirect.NEVER)
      throw new IllegalArgumentException("a redirect would carry credentials to another server");
    if (client.cookieHandler().isPresent())
      throw new IllegalArgumentException("the library's requests have no cookies");
    this.client = client;
  }

  @Override
  @NotNull
  public CompleteRequest send(@NotNull HttpRequest request) throws Exception {
    CompletableFuture<HttpResponse<byte[]>> sent = client.sendAsync(converted(request), head -> new Limited());
    try {
      // The client's own limit ends with the head of the response.
      HttpResponse<byte[]> response = sent.get(request.getTimeoutMs(), TimeUnit.MILLISECONDS);
      return Http.answer(request, response.statusCode(), response.headers().map(), response.body());
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof HttpTimeoutException)
        return new HttpFailure(request.getId(), TransportError.TIMEOUT);
      throw failed; // its cause counts
    } finally {
      sent.cancel(true); // ends the exchange if this thread was interrupted or waited too long
    }
  }

  private static java.net.http.HttpRequest converted(HttpRequest request) {
    URI uri = URI.create(request.getUrl());
    String body = request.getBody();
    BodyPublisher sent = body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body);
    java.net.http.HttpRequest.Builder made =
        java.net.http.HttpRequest.newBuilder(uri).method(request.getMethod().value(), sent);
    // In clear text the client would ask for an upgrade to HTTP/2 first.
    if ("http".equals(uri.getScheme())) made.version(HttpClient.Version.HTTP_1_1);
    for (Map.Entry<String, String> one : request.getHeaders().entrySet())
      made.header(one.getKey(), one.getValue());
    return made.build();
  }

  /** Collects a body up to the limit. */
  private static final class Limited implements HttpResponse.BodySubscriber<byte[]> {
    private final CompletableFuture<byte[]> body = new CompletableFuture<>();
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private Flow.Subscription subscription;

    @Override
    public CompletionStage<byte[]> getBody() { return body; }

    @Override
    public void onSubscribe(Flow.Subscription given) {
      subscription = given;
      given.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> parts) {
      for (ByteBuffer one : parts) {
        if (bytes.size() + one.remaining() > Http.BODY_LIMIT) {
          subscription.cancel();
          body.completeExceptionally(new ProtocolException("the response is over the limit"));
          return;
        }
        byte[] part = new byte[one.remaining()];
        one.get(part);
        bytes.write(part, 0, part.length);
      }
    }

    @Override
    public void onError(Throwable failure) {
      body.completeExceptionally(failure);
    }

    @Override
    public void onComplete() {
      body.complete(bytes.toByteArray());
    }
  }
}
