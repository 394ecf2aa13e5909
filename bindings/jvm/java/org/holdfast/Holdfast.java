package org.holdfast;

import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Supplier;
import java.util.logging.*;
import org.holdfast.Types.*;
import org.jetbrains.annotations.*;

/**
 * An open data folder. Any thread may use it; a call may write to the disk, so not the thread that
 * draws. An object without a sender that is not closed is closed when it is collected; every call on a
 * closed one throws {@link HoldfastException.Closed}.
 */
public final class Holdfast extends Operations implements AutoCloseable {
  // What a reader takes: HOLDFAST_NEXT_* of holdfast.h.
  static final int NEWS = 1;
  static final int REQUESTS = 2;
  static final int ALL = 3;

  private static final Logger LOG = Logger.getLogger("org.holdfast");
  private static final int OK = 0;
  private static final int CLOSED = 9;
  private static final long PAUSE_MS = 250;

  private final Handle handle;
  private final OpenReply opened;
  private final Keys keys; // null: the library's own key store
  private final Sending sending; // null: the host takes the requests

  private volatile Decision screen;
  private volatile FutureTask<Void> telling;

  /** What the reader has still to get: the screen of the open call, and what came before a screen. */
  private NextReply first;

  private final Deque<NextReply> later = new ArrayDeque<>();

  private Holdfast(Handle handle, OpenReply opened, Keys keys, HttpSender sender) {
    this.handle = handle;
    this.opened = opened;
    this.keys = keys;
    screen = opened.getScreen();
    first = screen == null ? null : NextReply.of(Collections.singletonMap("screen", screen.toMap()));
    sending = sender == null ? null : new Sending(this, sender);
  }

  /** Opens the folder for a host that sends the requests itself; see {@link #next(int)}. */
  @NotNull public static Holdfast open(@NotNull Config config) { return open(config, null, null); }

  /** Opens the folder, and sends the requests from now on. */
  @NotNull
  public static Holdfast open(@NotNull Config config, @NotNull HttpSender sender) {
    return open(config, sender, null);
  }

  /**
   * Opens the folder.
   *
   * @param sender sends the requests, from now on; null: the host does, see {@link #next(int)}
   * @param keys the platform's key store; null: the one that the configuration names
   */
  @NotNull
  public static Holdfast open(
      @NotNull Config config, @Nullable HttpSender sender, @Nullable KeyStore keys) {
    Keys asked = keys == null ? null : new Keys(keys);
    byte[] reply = Handle.open(Json.write(config.fields), asked);
    int status = reply[0];
    Handle handle = status == OK ? Handle.in(reply) : null;
    OpenReply opened = OpenReply.of(decoded(status, reply, Handle.OPEN_REPLY));
    if (asked != null) asked.prompt = opened.getUnlockPrompt();
    Holdfast app = new Holdfast(handle, opened, asked, sender);
    if (sender != null) app.sending.start();
    return app;
  }

  /** The reply of the open call: the version, and whether damaged files were set aside. */
  @NotNull public OpenReply getOpened() { return opened; }

  // ---- what the host gets ----

  /** The newest screen that was given; null: none yet, as in a worker. */
  @Nullable public Decision getScreen() { return screen; }

  /** The next thing; waits for it. Null: the handle is closed. */
  @Nullable public NextReply next() { return next(-1); }

  /**
   * The next thing, beginning with the first screen: {@code NextScreen}, {@code NextAnswer}, {@code
   * NextNotice} or {@code NextSync}; without a sender also {@code NextRequest}, to be sent once and
   * passed to {@code complete}. Asking for it acknowledges the notice before. After a failure, ask
   * again. One thread asks.
   *
   * @param timeoutMs how long to wait; 0: not at all; negative: no limit
   * @return {@code NextWake}: the time has passed; null: the handle is closed
   */
  @Nullable
  public NextReply next(int timeoutMs) {
    NextReply next = later.poll();
    try {
      if (next == null) next = taken(sending == null ? ALL : NEWS, first == null ? timeoutMs : 0);
    } catch (HoldfastException failure) {
      if (first == null || !failure.isRetryable()) throw failure;
      // It does not hold up the first screen. If it lasts, the next call tells.
      next = first;
    }
    if (first != null && next != null && !(next instanceof NextScreen)) {
      if (!(next instanceof NextWake)) later.add(next);
      next = first;
    }
    first = null;
    if (next instanceof NextScreen) screen = ((NextScreen) next).getScreen();
    return next;
  }

  /**
   * The next screen but {@code wait}, for instance the result of a sign-in. What else comes is kept for
   * {@link #next()}; a notice among it counts as acknowledged. Null: the handle is closed.
   */
  @Nullable
  public Decision settled() {
    List<NextReply> others = new ArrayList<>();
    try {
      for (NextReply next; (next = next()) != null; ) {
        if (!(next instanceof NextScreen)) others.add(next);
        else if (!screen.getScreen().equals(Screen.WAIT)) return screen;
      }
      return null;
    } finally {
      later.addAll(others);
    }
  }

  private NextReply taken(int what, int timeoutMs) {
    byte[] reply = handle.next(what, timeoutMs);
    return reply[0] == CLOSED ? null : NextReply.of(decoded(reply[0], reply, Handle.REPLY));
  }

  /** The next request, after failures too; null: the handle is closed. */
  NextReply nextRequest() { return patiently(() -> taken(REQUESTS, -1)); }

  private static NextReply patiently(Supplier<NextReply> next) {
    while (true) {
      try {
        return next.get();
      } catch (RuntimeException failure) {
        LOG.log(Level.WARNING, "what is next is asked for again", failure);
      }
      try {
        Thread.sleep(PAUSE_MS);
      } catch (InterruptedException ignored) {
        // Only a shorter pause.
      }
    }
  }

  /**
   * Gives the news to a listener, one at a time, until the handle is closed: instead of {@link
   * #next()}.
   *
   * @param executor calls the listener, for instance on the thread that draws
   */
  public void listen(@NotNull Executor executor, @NotNull NewsListener listener) {
    Sending.thread("holdfast-news", () -> {
      for (NextReply it; (it = patiently(this::next)) != null; ) tell(executor, listener, it);
    }).start();
  }

  private void tell(Executor executor, NewsListener listener, NextReply thing) {
    FutureTask<Void> task = new FutureTask<>(() -> {
      listener.onNews(thing);
      return null;
    });
    telling = task;
    try {
      executor.execute(task);
      task.get();
    } catch (CancellationException closed) {
      // The next thing is the end.
    } catch (Exception failure) {
      LOG.log(Level.SEVERE, "the listener failed", failure);
    }
  }

  // ---- calls ----

  /**
   * Makes a call by the name of its operation, with JSON values: maps, lists, texts, numbers, flags
   * and null. For what the typed methods do not have, such as an operation of a later version.
   */
  @NotNull
  public Map<String, Object> call(@NotNull String operation, @NotNull Map<String, ?> request) {
    return keys == null ? sent(operation, request) : keys.around(operation, () -> sent(operation, request));
  }

  @Override
  Map<String, Object> call(String operation, Request request) {
    return call(operation, request == null ? Collections.emptyMap() : ((ClosedRecord) request).fields);
  }

  private Map<String, Object> sent(String operation, Map<String, ?> fields) {
    byte[] request = fields.isEmpty() ? null : Json.write(fields);
    byte[] reply = handle.call(operation.getBytes(StandardCharsets.UTF_8), request);
    if (request != null) Arrays.fill(request, (byte) 0); // it may hold a token or a key
    return decoded(reply[0], reply, Handle.REPLY);
  }

  private static Map<String, Object> decoded(int status, byte[] reply, int from) {
    Map<String, Object> read = reply.length > from ? Json.read(reply, from) : null;
    Arrays.fill(reply, (byte) 0);
    if (status != OK || read == null) throw HoldfastException.of(status, read);
    return read;
  }

  // ---- the end ----

  /**
   * Gives up the requests in flight; the library sends them again later. Before the system suspends
   * the process, or for a fast {@link #close}.
   */
  public void cancel() {
    if (sending != null) sending.cancel();
  }

  /**
   * Waits for the requests in flight, and closes. When it returns the files are closed, unless another
   * thread is inside a call: that one finishes, and then closes them. May be called twice.
   */
  @Override
  public void close() {
    if (keys != null) keys.withdraw(null);
    if (sending != null) sending.finish();
    handle.close();
    FutureTask<Void> last = telling;
    if (last != null) last.cancel(false); // the executor may be what closes
  }

  /** The number of open handles and unreleased replies in this process, for leak tests. */
  public static long liveCount() { return Handle.live(); }

  /** What the library consists of. */
  @NotNull
  public static BuildInfo buildInfo() {
    return BuildInfo.of(Json.read(Handle.buildInfo().getBytes(StandardCharsets.UTF_8), 0));
  }

  /**
   * Writes the library's lines for developers to the system's log on Android, else to the error
   * stream: 0 errors, 1 and warnings, 2 and information, 3 everything; negative: none. Lines never
   * hold tokens, names, ids or payloads.
   */
  public static void log(int level) { Handle.log(level); }
}
