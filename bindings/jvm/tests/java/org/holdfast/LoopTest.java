package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

/** The loop: what next gives, the listener, the requests, and the end. */
@Timeout(900)
class LoopTest {
  @TempDir Path folder;
  private final Collector news = new Collector();
  private long before;
  private Holdfast app;

  @BeforeEach void count() { before = Holdfast.liveCount(); }

  @AfterEach
  void close() {
    app.cancel();
    app.close();
    assertEquals(before, Holdfast.liveCount());
  }

  private Config config() { return Server.config(folder.resolve("data")); }

  private void open(HttpSender sender) { app = Holdfast.open(config(), sender); }

  /** Begins to sign in, once the screen for it is shown. */
  private void signIn() throws Exception {
    app.listen(Runnable::run, news);
    news.screen(Screen.SIGN_IN);
    app.signInComplete(Server.SOLO);
  }

  private void visit() { app.queueAdd(Server.visit(5)); }

  // ---- next ----

  @Test
  void the_first_thing_is_the_first_screen() {
    app = Holdfast.open(config());
    NextScreen first = assertInstanceOf(NextScreen.class, app.next(0));
    assertEquals(Screen.SIGN_IN, first.getScreen().getScreen());
    assertEquals(app.getOpened().getScreen(), first.getScreen());
    assertInstanceOf(NextWake.class, app.next(0));
  }

  @Test
  void the_first_screen_is_not_shown_after_a_newer_one() {
    app = Holdfast.open(config());
    app.sessionLock();
    NextScreen newer = assertInstanceOf(NextScreen.class, app.next(0));
    assertEquals(app.getScreen(), newer.getScreen());
    assertInstanceOf(NextWake.class, app.next(0));
  }

  @Test
  void a_failure_withholds_no_screen() throws IOException {
    app = Holdfast.open(config());
    Files.move(folder.resolve("data"), folder.resolve("gone"));
    assertEquals(app.getOpened().getScreen(), ((NextScreen) app.next(0)).getScreen());
    assertThrows(HoldfastException.class, () -> app.next(0));
  }

  @Test
  void the_next_screen_but_wait_is_settled_and_the_rest_is_kept() throws Exception {
    open(new JdkHttpSender());
    assertEquals(Screen.SIGN_IN, app.settled().getScreen());
    app.signInComplete(Server.SOLO);
    assertEquals(Screen.HOME, app.settled().getScreen());
    CompletableFuture<Decision> locked = CompletableFuture.supplyAsync(app::settled);
    app.queueAdd(Server.visit(100_000)); // the server refuses it
    Patience.until(() -> app.syncStatus().getCounts().getParked() == 1);
    app.sessionLock();
    assertEquals(Screen.SIGN_IN, locked.get().getScreen());
    NextReply kept = app.next();
    while (kept instanceof NextSync) kept = app.next();
    assertInstanceOf(NextNotice.class, kept);
    app.close();
    assertNull(app.settled());
  }

  @Test
  void a_worker_has_no_screen() {
    app = Holdfast.open(config().role(ConfigRole.WORKER));
    assertInstanceOf(NextWake.class, app.next(0));
    assertNull(app.getScreen());
    app.sessionForeground();
    assertInstanceOf(NextScreen.class, app.next());
    assertEquals(Screen.SIGN_IN, app.getScreen().getScreen());
  }

  @Test
  void a_host_without_a_sender_sends_the_requests_itself() throws Exception {
    app = Holdfast.open(config());
    HttpSender sender = new JdkHttpSender();
    app.signInComplete(Server.SOLO);
    while (app.getScreen().getScreen() != Screen.HOME) {
      NextReply it = app.next();
      if (it instanceof NextRequest) app.complete(sender.send(((NextRequest) it).getRequest()));
    }
  }

  // ---- the listener ----

  @Test
  void a_listener_that_fails_gets_what_follows() throws Exception {
    open(new JdkHttpSender());
    CountDownLatch failed = new CountDownLatch(1);
    app.listen(Runnable::run, thing -> {
      boolean first = failed.getCount() > 0;
      failed.countDown();
      if (first) throw new IOException("the first time");
      news.onNews(thing);
    });
    failed.await();
    news.signIn(app);
  }

  @Test
  void a_slow_listener_delays_no_request() throws Exception {
    open(new JdkHttpSender());
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch stuck = new CountDownLatch(1);
    app.listen(Runnable::run, thing -> {
      news.onNews(thing);
      if (!(thing instanceof NextSync) || stuck.getCount() == 0) return;
      stuck.countDown();
      release.await();
    });
    long stored = Server.activities("solo@example.org");
    news.signIn(app);
    visit();
    stuck.await(); // also when the contacts have come
    visit(); // while the listener is inside
    Patience.until(() -> Server.activities("solo@example.org") >= stored + 2);
    assertEquals(stored + 2, Server.activities("solo@example.org"));
    release.countDown();
  }

  @Test
  void an_executor_shows_the_news_and_may_close() throws Exception {
    ExecutorService drawing = Executors.newSingleThreadExecutor(work -> new Thread(work, "drawing"));
    List<String> threads = new CopyOnWriteArrayList<>();
    CountDownLatch closed = new CountDownLatch(1);
    try {
      open(new JdkHttpSender());
      app.listen(drawing, thing -> {
        threads.add(Thread.currentThread().getName());
        news.onNews(thing);
        boolean isRun = thing instanceof NextSync && ((NextSync) thing).getSync().getMessage() != null;
        if (!isRun) return; // contacts have come
        app.close(); // from inside the listener
        closed.countDown();
      });
      news.signIn(app);
      visit();
      assertTrue(closed.await(Patience.ms(60), TimeUnit.MILLISECONDS));
      assertEquals(List.of("drawing"), threads.stream().distinct().toList());
      assertNull(app.next());
    } finally {
      drawing.shutdown();
    }
  }

  @Test
  void nothing_is_shown_after_the_close() throws Exception {
    List<Runnable> waiting = new CopyOnWriteArrayList<>();
    open(new JdkHttpSender());
    app.listen(waiting::add, news); // a thread that is busy, and that closes
    Patience.until(() -> waiting.size() == 1);
    app.close();
    waiting.get(0).run();
    assertEquals(List.of(), news.seen());
  }

  // ---- the requests ----

  @Test
  void cancelling_gives_up_a_request_that_hangs() throws Exception {
    CountDownLatch asked = new CountDownLatch(1);
    AtomicReference<TransportError> told = new AtomicReference<>();
    open(request -> {
      asked.countDown();
      try {
        new CountDownLatch(1).await();
      } catch (InterruptedException interrupted) {
        told.set(Http.failure(interrupted));
        throw interrupted;
      }
      throw new AssertionError();
    });
    signIn();
    asked.await();
    app.cancel();
    Patience.until(() -> told.get() != null);
    assertEquals(TransportError.CANCELLED, told.get());
  }

  /** It ended the loop, and close waited for a thread that had not begun. */
  @Test
  void a_thread_that_cannot_be_had_costs_one_request() throws Exception {
    AtomicInteger wanted = new AtomicInteger();
    InheritableThreadLocal<Object> none = new InheritableThreadLocal<>() {
      @Override
      protected Object childValue(Object parent) { // when a thread makes another one
        if (Thread.currentThread().getName().equals("holdfast-requests") && wanted.getAndIncrement() == 0)
          throw new OutOfMemoryError("unable to create native thread");
        return parent;
      }
    };
    none.set(this);
    try {
      open(new JdkHttpSender());
    } finally {
      none.remove();
    }
    signIn();
    assertFalse(news.screen(Screen.SIGN_IN).getMessage().getText().isEmpty());
    app.signInComplete(Server.SOLO);
    news.screen(Screen.HOME);
  }

  @Test
  void a_response_that_cannot_be_passed_on_is_a_refusal() throws Exception {
    AtomicInteger sent = new AtomicInteger();
    byte[] wrong = "{\"error_code\":\"invalid_credentials\"}".getBytes();
    open(
        request ->
            sent.incrementAndGet() == 1
                ? new HttpAnswer(request.getId(), 7)
                : Http.answer(request, 400, Map.of(), wrong));
    signIn();
    assertFalse(news.screen(Screen.SIGN_IN).getMessage().getText().isEmpty());
    assertEquals(2, sent.get());
  }
}
