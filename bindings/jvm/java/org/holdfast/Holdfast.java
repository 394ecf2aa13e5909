package org.holdfast;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.holdfast.Types.*;
import org.jetbrains.annotations.NotNull;

/**
 * An open data folder. Any thread may use it; a call may write to the disk, so not the thread that
 * draws. A {@link Runner} sends the requests. An object that is not closed is closed when it is
 * collected; every call on a closed one throws {@link HoldfastException.Closed}.
 */
public final class Holdfast extends Operations implements AutoCloseable {
  private static final int OK = 0;
  private static final int CLOSED = 9;

  /** The names of operations as the natives take them, made once. */
  private static final ConcurrentMap<String, byte[]> NAMES = new ConcurrentHashMap<>();

  private final Handle handle;
  private final OpenReply opened;
  private final Keys keys; // null: the library's own key store

  /** Guards the number of the newest decision that a call was answered with. */
  private final Object deciding = new Object();

  private long decided;

  private Holdfast(Handle handle, OpenReply opened, Keys keys) {
    this.handle = handle;
    this.opened = opened;
    this.keys = keys;
  }

  /** Opens the folder. The configuration names the key store, for instance key files. */
  @NotNull
  public static Holdfast open(@NotNull Config config) {
    return open(config, (Keys) null);
  }

  /** Opens the folder with the platform's key store. */
  @NotNull
  public static Holdfast open(@NotNull Config config, @NotNull KeyStore keys) {
    return open(config, new Keys(keys));
  }

  private static Holdfast open(Config config, Keys keys) {
    byte[] reply = Handle.open(Json.write(config.toMap()), keys);
    int status = reply[0];
    Handle handle = status == OK ? Handle.in(reply) : null;
    Map<String, Object> read = decoded(status, reply, Handle.OPEN_REPLY);
    OpenReply opened = OpenReply.of(read);
    if (keys != null) keys.prompt = opened.getUnlockPrompt();
    return new Holdfast(handle, opened, keys);
  }

  /** The reply of the open call: the version, and whether damaged files were set aside. */
  @NotNull
  public OpenReply getOpened() {
    return opened;
  }

  /**
   * Makes a call by the name of its operation, with JSON values: maps, lists, texts, numbers, flags
   * and null. For what the typed methods do not have, such as an operation of a later version.
   */
  @NotNull
  public Map<String, Object> call(@NotNull String operation, @NotNull Map<String, ?> request) {
    if (keys == null) return sent(operation, request);
    try {
      return sent(operation, keys.before(operation, request));
    } finally {
      keys.after();
    }
  }

  @Override
  Map<String, Object> call(String operation, Request request) {
    return call(operation, request == null ? Collections.emptyMap() : request.toMap());
  }

  private Map<String, Object> sent(String operation, Map<String, ?> fields) {
    byte[] request = fields.isEmpty() ? null : Json.write(fields);
    byte[] name = NAMES.get(operation);
    if (name == null) {
      name = operation.getBytes(StandardCharsets.UTF_8);
      if (NAMES.size() < 100) NAMES.put(operation, name);
    }
    byte[] reply = handle.call(name, request);
    if (request != null) Arrays.fill(request, (byte) 0); // it may hold a token or a key
    Map<String, Object> read = decoded(reply[0], reply, Handle.REPLY);
    follow(read);
    return read;
  }

  private static Map<String, Object> decoded(int status, byte[] reply, int from) {
    Map<String, Object> read = reply.length > from ? Json.read(reply, from) : null;
    Arrays.fill(reply, (byte) 0);
    if (status != OK || read == null) throw HoldfastException.of(status, read);
    return read;
  }

  /** Remembers the number of a decision in a reply. */
  private void follow(Map<String, Object> reply) {
    Object inner = reply.get("decision");
    Map<?, ?> decision = inner instanceof Map ? (Map<?, ?>) inner : reply;
    Object number = decision.containsKey("screen") ? decision.get("number") : null;
    if (!(number instanceof Long)) return;
    synchronized (deciding) {
      decided = Math.max(decided, (Long) number);
    }
  }

  /**
   * Whether the event is a decision that is older than one that a call has replied. Do not draw
   * such an event. Ask on the thread that draws, just before it draws.
   */
  public boolean isSuperseded(@NotNull Event event) {
    if (!(event instanceof DecisionEvent)) return false;
    synchronized (deciding) {
      return ((DecisionEvent) event).getDecision().getNumber() < decided;
    }
  }

  /**
   * Waits until there is something to poll, for at most so many milliseconds; negative: no limit.
   * For a host without a {@link Runner}.
   *
   * @return true: poll now, also after the time has passed; false: the handle was closed
   */
  public boolean await(int timeoutMs) {
    int status = handle.await(timeoutMs);
    if (status == OK) return true;
    if (status == CLOSED) return false;
    throw HoldfastException.of(status, null);
  }

  /**
   * Closes. When it returns the files are closed, unless another thread is inside a call: that one
   * finishes, and then closes them. May be called twice.
   */
  @Override
  public void close() {
    if (keys != null) keys.withdraw(Keys.NO_PROMPT);
    handle.close();
  }

  /** The number of open handles and unreleased replies in this process, for leak tests. */
  public static long liveCount() {
    return Handle.live();
  }

  /** What the library consists of. */
  @NotNull
  public static BuildInfo buildInfo() {
    return BuildInfo.of(Json.read(Handle.buildInfo(), 0));
  }

  /**
   * Writes the library's lines for developers to the system's log on Android, else to the error
   * stream: 0 errors, 1 and warnings, 2 and information, 3 everything; negative: none. Lines never
   * hold tokens, names, ids or payloads.
   */
  public static void log(int level) {
    Handle.log(level);
  }
}
