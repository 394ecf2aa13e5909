package org.holdfast;

import java.io.InterruptedIOException;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.*;
import java.security.cert.CertificateException;
import java.util.*;
import java.util.concurrent.*;
import javax.net.ssl.SSLException;
import org.holdfast.Types.*;
import org.jetbrains.annotations.NotNull;

/** What an {@link HttpSender} replies: a response, or the library's word for an exception. */
public final class Http {
  /** The most bytes of a body that a sender should take. */
  public static final int BODY_LIMIT = 8 << 20;

  private Http() {}

  /** A response; headers of equal names are joined, and a name that is null is left out. */
  @NotNull
  public static HttpAnswer answer(
      @NotNull HttpRequest request,
      int status,
      @NotNull Map<String, List<String>> headers,
      @NotNull byte[] body) {
    Map<String, String> joined = new LinkedHashMap<>();
    headers.forEach(
        (name, values) -> { // no name: the status line of HttpURLConnection
          if (name != null) joined.put(name.toLowerCase(Locale.ROOT), String.join(", ", values));
        });
    return new HttpAnswer(request.getId(), status).headers(joined).body(text(body));
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

  /** The word. The causes count too: clients wrap an unknown host in a failure to connect. */
  @NotNull
  public static TransportError failure(@NotNull Throwable failure) {
    TransportError found = null;
    int depth = 0;
    for (Throwable one = failure; one != null && depth < 16; one = one.getCause(), depth++) {
      TransportError word = word(one);
      if (word == TransportError.DNS || word == TransportError.TLS) return word;
      if (found == null) found = word;
    }
    return found == null ? TransportError.OFFLINE : found;
  }

  /** The word for one exception alone; null: it says nothing. */
  private static TransportError word(Throwable one) {
    if (one instanceof SSLException || one instanceof CertificateException) return TransportError.TLS;
    if (one instanceof UnknownHostException || one instanceof UnresolvedAddressException) return TransportError.DNS;
    if (one instanceof SocketTimeoutException || one instanceof TimeoutException) return TransportError.TIMEOUT;
    // OkHttp ends a call at its limit with this exception and these words.
    if (one instanceof InterruptedIOException)
      return "timeout".equals(one.getMessage()) ? TransportError.TIMEOUT : TransportError.CANCELLED;
    if (one instanceof InterruptedException
        || one instanceof CancellationException
        || one instanceof ClosedByInterruptException) return TransportError.CANCELLED;
    if (one instanceof ConnectException || one instanceof ProtocolException) return TransportError.REFUSED;
    return null;
  }
}
