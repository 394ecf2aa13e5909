package org.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.holdfast.jdk.Pkcs12KeyStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The loop: events, acknowledgement, stopping, and the key store. */
@Timeout(900)
class RunnerTest {
  @TempDir Path folder;
  private Holdfast app;
  private long before;

  @BeforeEach
  void open() {
    before = Holdfast.liveCount();
    app =
        Holdfast.open(
            Backend.config(folder.resolve("data"))
                .keystore(new KeyStoreChoice(KeyStoreChoiceKind.FILE)));
  }

  @AfterEach
  void close() throws Exception {
    app.close();
    Backend.heal();
    // A thread that sleeps in the library leaves it a moment after the handle was closed.
    Patience.until(() -> Holdfast.liveCount() <= before);
    assertTrue(Holdfast.liveCount() <= before, Holdfast.liveCount() + " live, before " + before);
  }

  private void signIn(Collector events) throws Exception {
    app.sessionResume();
    Decision decision =
        app.signInComplete(new SignInPassword("solo@example.org", Backend.PASSWORD));
    assertEquals(Screen.HOME, events.settled(decision).getScreen());
  }

  private void visit() {
    app.queueAdd(
        new QueueAddRequest("activity", Map.of("type", "visit", "minutes", 5))
            .occurredAtMs(System.currentTimeMillis()));
  }

  @Test
  void sends_what_is_queued_and_becomes_idle() throws Exception {
    Collector events = new Collector();
    try (Runner runner = new Runner(app, new JdkHttpSender(), events).start()) {
      signIn(events);
      visit();
      assertEquals(1, events.await(SyncCompletedEvent.class, one -> true).getIds().size());
      assertTrue(runner.awaitIdle(Patience.ms(60)));
    }
    assertEquals(0, app.poll().getEvents().size(), "everything is acknowledged");
    assertThrows(
        IllegalStateException.class,
        () -> {
          Runner twice = new Runner(app, new JdkHttpSender(), events).start();
          twice.close();
          twice.start();
        });
  }

  @Test
  void an_event_whose_listener_fails_comes_again() throws Exception {
    AtomicInteger tries = new AtomicInteger();
    Collector events =
        new Collector() {
          @Override
          public synchronized void onEvent(Event event) throws Exception {
            if (event instanceof SyncCompletedEvent && tries.incrementAndGet() < 3)
              throw tries.get() == 1
                  ? new IOException("the first time")
                  : new java.util.concurrent.CancellationException();
            super.onEvent(event);
          }
        };
    try (Runner runner = new Runner(app, new JdkHttpSender(), events).start()) {
      signIn(events);
      visit();
      events.await(SyncCompletedEvent.class, one -> true);
      assertTrue(runner.awaitIdle(Patience.ms(60)));
    }
    assertEquals(3, tries.get());
    assertEquals(0, app.poll().getEvents().size());
  }

  @Test
  void a_slow_listener_delays_no_request() throws Exception {
    Collector events = new Collector();
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch stuck = new CountDownLatch(1);
    Collector slow =
        new Collector() {
          @Override
          public void onEvent(Event event) throws Exception {
            events.onEvent(event);
            if (event instanceof SyncProgressEvent || event instanceof SyncCompletedEvent) {
              stuck.countDown();
              release.await();
            }
          }
        };
    long stored = Backend.activities("solo@example.org");
    try (Runner runner = new Runner(app, new JdkHttpSender(), slow).start()) {
      signIn(events);
      visit();
      stuck.await();
      visit(); // while the listener is inside
      Patience.until(() -> Backend.activities("solo@example.org") >= stored + 2);
      assertEquals(stored + 2, Backend.activities("solo@example.org"));
      release.countDown();
      assertTrue(runner.awaitIdle(Patience.ms(60)));
      long ids =
          events.seen().stream()
              .filter(one -> one instanceof SyncCompletedEvent)
              .mapToLong(one -> ((SyncCompletedEvent) one).getIds().size())
              .sum();
      assertEquals(2, ids, "no event was lost meanwhile");
    }
  }

  @Test
  void an_executor_shows_the_events_and_may_stop_the_runner() throws Exception {
    ExecutorService drawing = Executors.newSingleThreadExecutor(work -> new Thread(work, "drawing"));
    AtomicReference<Runner> runner = new AtomicReference<>();
    List<String> threads = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch stopped = new CountDownLatch(1);
    try {
      Collector events =
          new Collector() {
            @Override
            public synchronized void onEvent(Event event) throws Exception {
              threads.add(Thread.currentThread().getName());
              super.onEvent(event);
              if (event instanceof SyncCompletedEvent) {
                runner.get().close(); // from inside the listener
                stopped.countDown();
              }
            }
          };
      runner.set(new Runner(app, new JdkHttpSender(), events, drawing).start());
      signIn(events);
      visit();
      assertTrue(stopped.await(Patience.ms(60), TimeUnit.MILLISECONDS));
      assertEquals(List.of("drawing"), threads.stream().distinct().toList());
      // The event on which the listener stopped was not acknowledged.
      assertEquals(
          1, app.poll().getEvents().stream().filter(one -> one instanceof SyncCompletedEvent).count());
    } finally {
      drawing.shutdown();
    }
  }

  @Test
  void closing_the_handle_ends_the_runner_and_tells_the_listener() throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    AtomicReference<HoldfastException> why = new AtomicReference<>();
    EventListener listener =
        new EventListener() {
          @Override
          public void onEvent(Event event) {}

          @Override
          public void onEnd(HoldfastException failure) {
            why.set(failure);
            ended.countDown();
          }
        };
    Runner runner = new Runner(app, new JdkHttpSender(), listener).start();
    app.sessionResume();
    runner.awaitIdle(Patience.ms(60));
    app.close();
    assertTrue(ended.await(Patience.ms(60), TimeUnit.MILLISECONDS));
    assertNull(why.get());
    runner.close();
  }

  @Test
  void cancelling_gives_up_a_request_that_hangs() throws Exception {
    Collector events = new Collector();
    CountDownLatch asked = new CountDownLatch(1);
    AtomicReference<TransportError> told = new AtomicReference<>();
    HttpSender hanging =
        request -> {
          asked.countDown();
          try {
            new CountDownLatch(1).await();
          } catch (InterruptedException interrupted) {
            told.set(HttpFailures.of(interrupted));
            throw interrupted;
          }
          throw new AssertionError();
        };
    Runner runner = new Runner(app, hanging, events).start();
    app.sessionResume();
    app.signInComplete(new SignInPassword("solo@example.org", Backend.PASSWORD));
    asked.await();
    runner.cancel();
    assertEquals(TransportError.CANCELLED, told.get());
    assertFalse(runner.awaitIdle(0));
  }

  @Test
  void decisions_that_a_reply_has_superseded_are_left_out() throws Exception {
    app.sessionResume();
    Decision newer = app.sessionForeground();
    Map<String, Object> older = new java.util.LinkedHashMap<>(newer.toMap());
    older.put("number", newer.getNumber() - 1);
    assertTrue(app.isSuperseded(event(older)));
    assertFalse(app.isSuperseded(event(newer.toMap())));
  }

  private static Event event(Map<String, Object> decision) {
    Event event = Event.of(Map.of("seq", 1L, "type", "decision", "decision", decision));
    assertTrue(event instanceof DecisionEvent);
    return event;
  }

  @Test
  void keys_in_a_pkcs12_file() throws Exception {
    Path file = folder.resolve("keys.p12");
    Pkcs12KeyStore keys = new Pkcs12KeyStore(file, "secret".toCharArray());
    assertNull(keys.load("device", null), "an absent file has no keys");
    byte[] key = new byte[32];
    java.util.Arrays.fill(key, (byte) 7);
    keys.save("device", key, KeyProtection.DEVICE);
    keys.save("session", new byte[32], KeyProtection.DEVICE);
    Pkcs12KeyStore again = new Pkcs12KeyStore(file, "secret".toCharArray());
    org.junit.jupiter.api.Assertions.assertArrayEquals(key, again.load("device", null));
    again.erase("session");
    again.erase("session");
    assertNull(keys.load("session", null));
    assertEquals(
        KeyResult.UNAVAILABLE,
        assertThrows(
                KeyStoreException.class,
                () -> keys.save("biometric", key, KeyProtection.BIOMETRIC))
            .getResult());
    // A wrong password, or a damaged file, is never "not found".
    assertThrows(
        IOException.class,
        () -> new Pkcs12KeyStore(file, "wrong".toCharArray()).load("device", null));
    java.nio.file.Files.write(file, new byte[] {1, 2, 3});
    assertThrows(IOException.class, () -> keys.load("device", null));
    assertEquals(
        "rw-------",
        java.nio.file.attribute.PosixFilePermissions.toString(
            java.nio.file.Files.getPosixFilePermissions(file)));
    try (var files = java.nio.file.Files.list(folder)) {
      assertEquals(1, files.filter(one -> one.toString().contains(".p12")).count());
    }
  }

  /** A key store that fails for the moment signs nobody out, and its exceptions become results. */
  @Test
  void a_key_store_that_fails_is_asked_again() throws Exception {
    app.close();
    AtomicInteger broken = new AtomicInteger(1);
    Pkcs12KeyStore real = new Pkcs12KeyStore(folder.resolve("keys.p12"), "p".toCharArray());
    KeyStore keys =
        new KeyStore() {
          @Override
          public byte[] load(String name, String prompt) throws Exception {
            if (broken.get() == 1) throw new KeyStoreException(KeyResult.LOCKED);
            return real.load(name, prompt);
          }

          @Override
          public void save(String name, byte[] key, KeyProtection protection)
              throws Exception {
            real.save(name, key, protection);
          }

          @Override
          public void erase(String name) throws Exception {
            real.erase(name);
          }
        };
    app = Holdfast.open(Backend.config(folder.resolve("locked")), keys);
    assertEquals("host", app.getOpened().getKeystore().value());
    Collector events = new Collector();
    try (Runner runner = new Runner(app, new JdkHttpSender(), events).start()) {
      assertEquals("keystore_locked", app.sessionResume().getReason().value());
      broken.set(0);
      Decision decision =
          events
              .await(
                  DecisionEvent.class,
                  one -> one.getDecision().getScreen().equals(Screen.SIGN_IN))
              .getDecision();
      assertEquals("session_missing", decision.getReason().value());
    }
  }
}
