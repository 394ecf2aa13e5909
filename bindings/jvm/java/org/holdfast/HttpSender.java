package org.holdfast;

import org.holdfast.Types.HttpRequest;
import org.jetbrains.annotations.NotNull;

/**
 * Sends one request over HTTP and waits for its response, for at most its {@code timeout_ms} in
 * all. Sends it once and as it is: no redirects, no second try, no cookies, no cache, no log. Several
 * threads call it at once. An exception becomes a {@code TransportError} by {@link HttpFailures}.
 */
public interface HttpSender {
  /** Sends the request. A thread that is interrupted gives up the request. */
  @NotNull
  HttpResult send(@NotNull HttpRequest request) throws Exception;
}
