package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.lang.management.ManagementFactory;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.holdfast.HoldfastException.*;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

/** The handle: typed calls, errors, closing, and memory. */
@Timeout(900)
class HoldfastTest {
  @TempDir Path folder;

  private Config config() { return Server.config(folder.resolve("data")); }

  @Test
  void opens_and_decides() {
    try (Holdfast app = Holdfast.open(config())) {
      assertEquals("0.2.0", app.getOpened().getVersion());
      assertEquals(Screen.SIGN_IN, app.getScreen().getScreen());
      assertEquals(Screen.Known.SIGN_IN, app.getScreen().getScreen().known());
    }
    assertEquals("0.2.0", Holdfast.buildInfo().getVersion());
  }

  /** Else a test could not remove the folder, nor another process take it over at once. */
  @Test
  void the_files_are_closed_when_close_returns() {
    for (int count = 0; count < 20; count++) {
      Path data = folder.resolve("data" + count);
      try (Holdfast app = Holdfast.open(Server.config(data), new JdkHttpSender())) {
        app.listen(Runnable::run, thing -> {});
      }
      // SQLite removes its log with the last connection.
      assertFalse(Files.exists(data.resolve("holdfast.db-wal")));
    }
  }

  @Test
  void an_error_names_its_field() {
    try (Holdfast app = Holdfast.open(config())) {
      HoldfastException unknown =
          assertThrows(Invalid.class, () -> app.signInBegin(new SignInBeginRequest("bankid")));
      assertEquals(ErrorCode.SIGN_IN_UNKNOWN_METHOD, unknown.getCode());
      assertEquals("/method", unknown.getField());
      assertFalse(unknown.isRetryable());
      HoldfastException signedOut = assertThrows(State.class, () -> app.queueAdd(Server.visit(5)));
      assertEquals(ErrorCode.SESSION_NONE, signedOut.getCode());
      HoldfastException misspelt =
          assertThrows(Invalid.class, () -> app.call("network_report", Map.of("onlin", true)));
      assertEquals(ErrorCode.REQUEST_UNKNOWN_FIELD, misspelt.getCode());
      assertEquals("/onlin", misspelt.getField());
      assertThrows(Invalid.class, () -> app.call("queue_ad", Map.of()));
    }
  }

  @Test
  void an_open_that_is_refused_leaves_nothing() {
    long before = Holdfast.liveCount();
    Config wrong = new Config("~/data", new Backend("https://x.test", "k")).authMethods(List.of());
    assertEquals("/data_dir", assertThrows(Invalid.class, () -> Holdfast.open(wrong)).getField());
    assertEquals(before, Holdfast.liveCount());
  }

  /** Java's encoder would put a question mark in its place, and store another text than was given. */
  @Test
  void half_a_surrogate_pair_is_refused_and_a_whole_one_is_kept() {
    try (Holdfast app = Holdfast.open(config())) {
      SignInBeginRequest half = new SignInBeginRequest("a\ud83dz");
      HoldfastException refused = assertThrows(Invalid.class, () -> app.signInBegin(half));
      assertTrue(refused.getCode().value().startsWith("request."), refused.getMessage());
      SignInBeginRequest whole = new SignInBeginRequest("a\ud83d\ude00z");
      HoldfastException unknown = assertThrows(Invalid.class, () -> app.signInBegin(whole));
      assertEquals(ErrorCode.SIGN_IN_UNKNOWN_METHOD, unknown.getCode());
    }
  }

  @Test
  void the_sign_in_in_a_browser_is_typed() {
    List<AuthMethodConfig> pkce = List.of(new AuthMethodConfig("bankid", SignInFlow.PKCE));
    String back = "com.example.app:/signed-in";
    try (Holdfast app = Holdfast.open(config().authMethods(pkce).redirectUrl(back))) {
      SignInBeginReply begun = app.signInBegin(new SignInBeginRequest("bankid"));
      assertTrue(((OpenInBrowser) begun).getUrl().startsWith(Server.URL + "/auth/v1/"));
    }
  }

  @Test
  void a_closed_handle_answers_closed_and_closing_twice_is_harmless() {
    long before = Holdfast.liveCount();
    Holdfast app = Holdfast.open(config());
    assertEquals(before + 1, Holdfast.liveCount());
    app.close();
    app.close();
    assertEquals(before, Holdfast.liveCount());
    assertEquals(ErrorCode.HANDLE_CLOSED, assertThrows(Closed.class, app::sessionResume).getCode());
    assertNull(app.next());
  }

  @Test
  void closing_wakes_a_thread_that_waits_inside() throws Exception {
    Holdfast app = Holdfast.open(config());
    assertInstanceOf(NextScreen.class, app.next());
    CompletableFuture<NextReply> waiting = CompletableFuture.supplyAsync(app::next);
    app.close();
    assertNull(waiting.get());
  }

  @Test
  void closing_while_other_threads_call() throws Exception {
    long before = Holdfast.liveCount();
    for (int round = 0; round < 20; round++) {
      Holdfast app = Holdfast.open(config());
      CountDownLatch begun = new CountDownLatch(4);
      List<CompletableFuture<Void>> threads = new ArrayList<>();
      Runnable calling = () -> {
        begun.countDown();
        while (true) app.sessionStatus();
      };
      for (int i = 0; i < 4; i++)
        threads.add(CompletableFuture.runAsync(calling, work -> new Thread(work).start()));
      begun.await();
      app.close();
      for (CompletableFuture<Void> one : threads)
        assertInstanceOf(Closed.class, assertThrows(ExecutionException.class, one::get).getCause());
    }
    assertEquals(before, Holdfast.liveCount());
  }

  @Test
  void a_handle_that_is_collected_is_closed() throws Exception {
    long before = Holdfast.liveCount();
    for (int i = 0; i < 10; i++) Holdfast.open(config());
    // The collector decides when; each round makes it likelier.
    Patience.until(() -> {
      System.gc();
      return Holdfast.liveCount() <= before;
    });
    assertEquals(before, Holdfast.liveCount());
  }

  @Test
  void a_hundred_thousand_calls_leave_nothing() throws Exception {
    try (Holdfast app = Holdfast.open(config())) {
      calls(app, 20_000);
      long live = Holdfast.liveCount();
      int threads = Thread.activeCount();
      long heap = heap();
      long resident = resident();
      calls(app, 100_000);
      assertEquals(live, Holdfast.liveCount());
      assertTrue(Thread.activeCount() <= threads, "threads of these calls");
      assertTrue(heap() - heap < 2 << 20, "the heap grew by " + (heap() - heap));
      // 100,000 replies are 50 MB. The JVM's own memory moves by some.
      assertTrue(resident() - resident < 24 << 20, "memory grew by " + (resident() - resident));
    }
  }

  private static void calls(Holdfast app, int count) {
    for (int i = 0; i < count / 4; i++) {
      app.sessionStatus();
      app.networkReport(new NetworkReportRequest(true));
      app.routeCheck(new RouteCheckRequest("/mentor"));
      // An error reply is released too.
      assertThrows(Invalid.class, () -> app.signInBegin(new SignInBeginRequest("none")));
    }
  }

  private static long heap() {
    for (int i = 0; i < 3; i++) System.gc();
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  private static long resident() throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/status")))
      if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
    throw new AssertionError("no VmRSS");
  }
}
