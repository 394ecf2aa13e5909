package org.holdfast;

import org.holdfast.Types.*;
import org.jetbrains.annotations.NotNull;

/**
 * Sends one request over HTTP and waits for its response, for at most its {@code timeout_ms} in
 * all. Sends it once and as it is: no redirects, no second try, no cookies, no cache, no log. Several
 * threads call it at once.
 */
public interface HttpSender {
  /**
   * Sends the request. A thread that is interrupted gives it up.
   *
   * @return {@link Http#answer}, or an {@code HttpFailure}
   * @throws Exception becomes an {@code HttpFailure} by {@link Http#failure}
   */
  @NotNull
  CompleteRequest send(@NotNull HttpRequest request) throws Exception;
}
