package org.holdfast.android;

import static org.junit.jupiter.api.Assertions.*;

import android.content.Context;
import android.net.*;
import androidx.lifecycle.*;
import androidx.work.*;
import java.nio.file.Path;
import java.util.*;
import org.holdfast.*;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;

/** The network, the presence of the user and the worker, over the library and a stand-in for Android. */
@Timeout(120)
class ReportsTest {
  @TempDir Path folder;
  private Holdfast app;
  private final Collector news = new Collector();
  private final Phone phone = new Phone();

  @BeforeEach
  void open() {
    Config config = Server.config(folder.resolve("data")).role(ConfigRole.WORKER);
    app = Holdfast.open(config, new JdkHttpSender());
    app.listen(Runnable::run, news);
  }

  @AfterEach
  void close() {
    app.close();
    ProcessLifecycleOwner.get().observers.clear();
  }

  /** An application on a device. */
  private final class Phone extends Context implements SyncWorker.Host {
    final ConnectivityManager network = new ConnectivityManager();

    @Override public <T> T getSystemService(Class<T> service) { return service.cast(network); }

    @Override public Holdfast holdfast() { return app; }
  }

  private boolean offline() {
    return app.queueExplain().getReasons().stream().anyMatch(one -> one.getCode().value().equals("offline"));
  }

  private void signIn() throws Exception {
    app.sessionForeground();
    news.signIn(app);
  }

  private void visit() { app.queueAdd(Server.visit(5)); }

  @Test
  void the_network_is_reported() throws Exception {
    signIn();
    try (NetworkReport report = new NetworkReport(phone, app, Runnable::run)) {
      visit();
      assertTrue(offline());
      Network wifi = new Network();
      Network cell = new Network();
      phone.network.callback.onAvailable(wifi);
      phone.network.callback.onAvailable(cell);
      phone.network.callback.onLost(wifi); // the default has changed to the other one
      assertTrue(!offline());
      phone.network.callback.onLost(cell);
      assertTrue(offline() || app.syncStatus().getCounts().getPending() == 0);
    }
    assertNull(phone.network.callback);
  }

  @Test
  void the_presence_of_the_user_is_reported() throws Exception {
    DefaultLifecycleObserver observer;
    try (PresenceReport report = new PresenceReport(app, Runnable::run)) {
      observer = ProcessLifecycleOwner.get().observers.get(0);
      assertEquals(List.of(), news.seen(), "nobody is at the screen of a worker");
      observer.onStart(null); // the state that the observer finds
      news.screen(Screen.SIGN_IN);
      news.signIn(app);
      observer.onStop(null);
      observer.onStart(null);
      news.screen(Screen.HOME);
    }
    assertEquals(0, ProcessLifecycleOwner.get().observers.size());
    app.close();
    observer.onStop(null); // nobody is left to be told, and nothing happens
  }

  @Test
  void the_worker_sends_what_is_queued() throws Exception {
    signIn();
    long stored = Server.activities("solo@example.org");
    visit();
    visit();
    SyncWorker worker = new SyncWorker(phone, new WorkerParameters());
    assertEquals(ListenableWorker.Result.success(), worker.doWork());
    assertEquals(stored + 2, Server.activities("solo@example.org"));
    Map<String, ?> dropped = Map.of("match", Map.of("path", "/rest/v1"), "action", "drop_before", "times", -1);
    Server.control("POST", "/faults", dropped);
    try {
      visit();
      assertEquals(ListenableWorker.Result.retry(), worker.doWork());
    } finally {
      Server.control("DELETE", "/faults", Map.of());
    }
    assertEquals(ListenableWorker.Result.success(), worker.doWork());
    app.close();
    assertEquals(ListenableWorker.Result.failure(), worker.doWork());
  }

  @Test
  void one_run_is_enough() {
    List<String> asked = new ArrayList<>();
    WorkManager.instance = new WorkManager() {
      @Override
      public void enqueueUniqueWork(String name, ExistingWorkPolicy policy, OneTimeWorkRequest request) {
        asked.add(name + " " + policy);
      }
    };
    SyncWorker.enqueue(phone);
    assertEquals(List.of("org.holdfast.sync KEEP"), asked);
  }
}
