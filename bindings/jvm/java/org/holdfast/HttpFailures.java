package org.holdfast;

import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.UnresolvedAddressException;
import java.security.cert.CertificateException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLException;
import org.holdfast.Types.TransportError;
import org.jetbrains.annotations.NotNull;

/** The library's word for an exception of an HTTP client. */
public final class HttpFailures {
  private HttpFailures() {}

  /** The word. The causes count too: clients wrap an unknown host in a failure to connect. */
  @NotNull
  public static TransportError of(@NotNull Throwable failure) {
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
    if (one instanceof SSLException || one instanceof CertificateException)
      return TransportError.TLS;
    if (one instanceof UnknownHostException || one instanceof UnresolvedAddressException)
      return TransportError.DNS;
    if (one instanceof SocketTimeoutException || one instanceof TimeoutException)
      return TransportError.TIMEOUT;
    // OkHttp ends a call at its limit with this exception and these words.
    if (one instanceof InterruptedIOException)
      return "timeout".equals(one.getMessage()) ? TransportError.TIMEOUT : TransportError.CANCELLED;
    if (one instanceof InterruptedException
        || one instanceof CancellationException
        || one instanceof ClosedByInterruptException) return TransportError.CANCELLED;
    if (one instanceof ConnectException || one instanceof ProtocolException)
      return TransportError.REFUSED;
    return null;
  }
}
