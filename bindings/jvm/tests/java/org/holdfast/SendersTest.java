package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.io.*;
import java.net.*;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import okhttp3.*;
import okio.Buffer;
import okio.ForwardingSource;
import okio.Okio;
import okio.Source;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.holdfast.okhttp.OkHttpSender;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The senders, against a server that answers with the bytes that a test gives it. */
@Timeout(900)
class SendersTest {
  private final List<String> received = Collections.synchronizedList(new ArrayList<>());
  private ServerSocket server;
  private volatile byte[] response;
  private volatile long trickleMs;
  private volatile boolean closes;

  static Stream<HttpSender> senders() { return Stream.of(new JdkHttpSender(), new OkHttpSender()); }

  @BeforeEach
  void serve() throws IOException {
    server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Sending.thread("server", this::accept).start();
  }

  @AfterEach void end() throws IOException { server.close(); }

  private void accept() {
    try {
      while (true) {
        Socket socket = server.accept();
        Sending.thread("connection", () -> answer(socket)).start();
      }
    } catch (IOException closed) {
      // The test has ended.
    }
  }

  private void answer(Socket socket) {
    try (socket) {
      InputStream in = socket.getInputStream();
      StringBuilder head = new StringBuilder();
      while (true) {
        head.setLength(0);
        while (head.indexOf("\r\n\r\n") < 0) {
          int one = in.read();
          if (one < 0) return;
          if (one == 22 && head.length() == 0) { // the beginning of a handshake
            socket.getOutputStream().write("HTTP/1.1 400 No\r\n\r\n".getBytes());
            return;
          }
          head.append((char) one);
        }
        int length = 0;
        for (String line : head.toString().split("\r\n"))
          if (line.toLowerCase().startsWith("content-length:"))
            length = Integer.parseInt(line.substring(15).trim());
        received.add(head + new String(in.readNBytes(length), StandardCharsets.UTF_8));
        if (closes) return;
        if (response == null) {
          in.read(); // until the client hangs up
          return;
        }
        byte[] bytes = response; // the test goes on
        int step = trickleMs == 0 ? bytes.length : 1;
        for (int at = 0; at < bytes.length; at += step) {
          socket.getOutputStream().write(bytes, at, step);
          socket.getOutputStream().flush();
          Thread.sleep(trickleMs);
        }
      }
    } catch (IOException | InterruptedException gone) {
      // The client has hung up.
    }
  }

  private static byte[] http(int status, String headers, byte[] body) {
    byte[] head =
        ("HTTP/1.1 " + status + " X\r\n" + headers + "Content-Length: " + body.length + "\r\n\r\n")
            .getBytes(StandardCharsets.ISO_8859_1);
    byte[] all = Arrays.copyOf(head, head.length + body.length);
    System.arraycopy(body, 0, all, head.length, body.length);
    return all;
  }

  private HttpRequest request(String method, String body, long timeoutMs) {
    return request("http://127.0.0.1:" + server.getLocalPort() + "/rest/v1/x?a=b", method, body, timeoutMs);
  }

  static HttpRequest request(String url, String method, String body, long timeoutMs) {
    Map<String, Object> fields = new LinkedHashMap<>(Map.of("id", 1L, "purpose", "upload"));
    fields.putAll(Map.of("method", method, "url", url, "timeout_ms", timeoutMs));
    fields.put("headers", Map.of("apikey", "secret", "content-type", "application/json"));
    fields.put("body", body);
    return HttpRequest.of(fields);
  }

  private Map<String, Object> sent(HttpSender sender, String method, String body) throws Exception {
    return sender.send(request(method, body, Patience.ms(60))).toMap();
  }

  private static TransportError failure(HttpSender sender, HttpRequest request) {
    try {
      String error = (String) sender.send(request).toMap().get("error");
      return TransportError.valueOf(error.toUpperCase());
    } catch (Exception failure) {
      return Http.failure(failure);
    }
  }

  @ParameterizedTest
  @MethodSource("senders")
  void sends_the_request_as_it_is(HttpSender sender) throws Exception {
    response = http(201, "X-One: a\r\nx-one: b\r\nDate: now\r\n", "[\"æ\"]".getBytes(StandardCharsets.UTF_8));
    Map<String, Object> answer = sent(sender, "POST", "{\"n\":\"ø\"}");
    assertEquals(1L, answer.get("id"));
    assertEquals(201L, answer.get("status"));
    assertEquals("[\"æ\"]", answer.get("body"));
    Map<?, ?> headers = (Map<?, ?>) answer.get("headers");
    assertEquals("a, b", headers.get("x-one"));
    assertEquals("now", headers.get("date"));
    String sent = received.get(0);
    assertTrue(sent.startsWith("POST /rest/v1/x?a=b HTTP/1.1\r\n"), sent);
    assertTrue(sent.endsWith("\r\n\r\n{\"n\":\"ø\"}"), sent);
    String lower = sent.toLowerCase();
    assertTrue(lower.contains("\r\napikey: secret\r\n"), sent);
    assertTrue(lower.contains("\r\ncontent-type: application/json\r\n"), sent);
    assertTrue(!lower.contains("cookie") && !lower.contains("upgrade"), sent);
  }

  @ParameterizedTest
  @MethodSource("senders")
  void a_post_without_a_body_and_a_get_are_sent(HttpSender sender) throws Exception {
    response = http(204, "", new byte[0]);
    assertEquals(204L, sent(sender, "POST", null).get("status"));
    assertEquals(204L, sent(sender, "GET", null).get("status"));
    assertTrue(received.get(1).startsWith("GET "));
  }

  @ParameterizedTest
  @MethodSource("senders")
  void a_redirect_is_a_response(HttpSender sender) throws Exception {
    response = http(307, "Location: http://127.0.0.1:" + server.getLocalPort() + "/other\r\n", new byte[0]);
    assertEquals(307L, sent(sender, "POST", "{}").get("status"));
    assertEquals(1, received.size());
  }

  @ParameterizedTest
  @MethodSource("senders")
  void a_body_that_is_no_text_is_null(HttpSender sender) throws Exception {
    for (byte[] body : List.of(new byte[] {(byte) 0xff, 'a'}, new byte[] {'a', 0, 'b'})) {
      response = http(200, "", body);
      assertNull(sent(sender, "GET", null).getOrDefault("body", "absent"));
    }
  }

  @ParameterizedTest
  @MethodSource("senders")
  void a_response_over_the_limit_is_refused(HttpSender sender) {
    byte[] body = new byte[Http.BODY_LIMIT + 1];
    Arrays.fill(body, (byte) 'a');
    response = http(200, "", body);
    assertEquals(TransportError.REFUSED, failure(sender, request("GET", null, Patience.ms(60))));
  }

  /** The limit is on the whole exchange, whatever the server trickles. */
  @ParameterizedTest
  @MethodSource("senders")
  void a_response_that_trickles_times_out(HttpSender sender) {
    trickleMs = 50;
    response = http(200, "X: " + "y".repeat(4000) + "\r\n", new byte[4000]);
    assertEquals(TransportError.TIMEOUT, failure(sender, request("GET", null, Patience.ms(1))));
    trickleMs = 0;
    response = null;
    assertEquals(TransportError.TIMEOUT, failure(sender, request("POST", "{}", Patience.ms(1))));
  }

  @ParameterizedTest
  @MethodSource("senders")
  void a_post_is_not_sent_again_when_the_connection_breaks(HttpSender sender) {
    closes = true;
    assertEquals(TransportError.OFFLINE, failure(sender, request("POST", "{}", Patience.ms(60))));
    assertEquals(1, received.size());
  }

  @ParameterizedTest
  @MethodSource("senders")
  void failures_have_the_librarys_words(HttpSender sender) throws Exception {
    HttpRequest nowhere = request("http://no-such-host.invalid/", "GET", null, Patience.ms(60));
    assertEquals(TransportError.DNS, failure(sender, nowhere));
    response = http(200, "", new byte[0]);
    String url = "https://127.0.0.1:" + server.getLocalPort() + "/";
    assertEquals(TransportError.TLS, failure(sender, request(url, "GET", null, Patience.ms(60))));
    // A socket that is bound and does not listen keeps its port, and refuses.
    try (Socket nobody = new Socket()) {
      nobody.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      url = "http://127.0.0.1:" + nobody.getLocalPort() + "/";
      assertEquals(TransportError.REFUSED, failure(sender, request(url, "GET", null, Patience.ms(60))));
    }
  }

  @ParameterizedTest
  @MethodSource("senders")
  void a_thread_that_is_interrupted_gives_the_request_up(HttpSender sender) throws Exception {
    response = null;
    AtomicReference<TransportError> told = new AtomicReference<>();
    Thread thread = new Thread(() -> told.set(failure(sender, request("GET", null, Patience.ms(60)))));
    thread.start();
    while (received.isEmpty()) Thread.sleep(5);
    thread.interrupt();
    thread.join();
    assertEquals(TransportError.CANCELLED, told.get());
  }

  /** Nobody got its failure, and the request stayed in flight for good. */
  @Test
  void a_body_that_fails_in_any_way_is_a_failure() {
    response = http(200, "", "[]".getBytes());
    Interceptor breaks = chain -> {
      Response whole = chain.proceed(chain.request());
      Source broken = new ForwardingSource(whole.body().source()) {
        @Override
        public long read(Buffer to, long count) {
          throw new IllegalStateException("a defect of an interceptor");
        }
      };
      return whole.newBuilder().body(ResponseBody.create(null, 2, Okio.buffer(broken))).build();
    };
    HttpSender sender = new OkHttpSender(new OkHttpClient.Builder().addInterceptor(breaks).build());
    assertEquals(TransportError.OFFLINE, failure(sender, request("GET", null, Patience.ms(60))));
  }

  @Test
  void a_client_that_follows_redirects_is_refused() {
    HttpClient follows = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
    assertThrows(IllegalArgumentException.class, () -> new JdkHttpSender(follows));
    HttpClient keeps = HttpClient.newBuilder().cookieHandler(new java.net.CookieManager()).build();
    assertThrows(IllegalArgumentException.class, () -> new JdkHttpSender(keeps));
  }

  @Test
  void exceptions_have_words() {
    Throwable unresolved = new java.nio.channels.UnresolvedAddressException();
    Throwable certificate = new java.security.cert.CertificateException();
    Object[][] table = {
      {new java.net.ConnectException().initCause(unresolved), TransportError.DNS},
      {new IOException(certificate), TransportError.TLS},
      {new java.net.SocketTimeoutException(), TransportError.TIMEOUT},
      {new java.util.concurrent.TimeoutException(), TransportError.TIMEOUT},
      {new java.io.InterruptedIOException("timeout"), TransportError.TIMEOUT},
      {new java.io.InterruptedIOException("interrupted"), TransportError.CANCELLED},
      {new InterruptedException(), TransportError.CANCELLED},
      {new java.util.concurrent.CancellationException(), TransportError.CANCELLED},
      {new java.net.ProtocolException(), TransportError.REFUSED},
      {new java.net.NoRouteToHostException(), TransportError.OFFLINE},
      {new IOException("reset"), TransportError.OFFLINE},
      {new IllegalStateException(), TransportError.OFFLINE}
    };
    for (Object[] row : table)
      assertEquals(row[1], Http.failure((Throwable) row[0]), row[0] + "");
    Exception first = new Exception();
    first.initCause(new Exception(first));
    assertEquals(TransportError.OFFLINE, Http.failure(first), "a circle of causes");
  }
}
