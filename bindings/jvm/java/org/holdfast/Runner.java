package org.holdfast;

import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.holdfast.Types.*;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

/**
 * The host's loop, on two threads of its own: one waits for work and polls, the other hands the events
 * to the listener. Requests are sent on further threads. Without work they sleep until the time that
 * the last poll named.
 *
 * <p>An event is acknowledged with the poll after the listener has returned. While the listener is
 * busy, requests go on and further events stay in the library. A decision that a reply has superseded
 * is left out.
 */
public final class Runner implements AutoCloseable {
  private static final Logger LOG = Logger.getLogger("org.holdfast");

  /** The pause after a poll or an event that failed and may succeed later. */
  private static final long PAUSE_MS = 500;

  /** A manual clock stands still, and the loop must not spin. */
  private static final long SHORTEST_WAIT_MS = 10;

  private final Holdfast app;
  private final EventListener listener;
  private final Executor executor;
  private final Workers workers;

  /** Guards the fields below. */
  private final ReentrantLock lock = new ReentrantLock();

  private final Condition changed = lock.newCondition();
  private Thread shower;
  private boolean stopping;
  private boolean polling;
  private boolean showing;
  private boolean quiet;
  private boolean ended;

  /** The events of a poll that the listener has not handled to the end; null: none. */
  private List<Event> events;

  /** Of the thread that calls the listener: this declined the event, and there is no need to wait. */
  private boolean declined;

  /** When the last poll wants the next one, from then on; null: after a call or a response. */
  private Long wakeInMs;

  private long polledAt;
  /** The last event that was handled, and the last one that a poll has acknowledged. */
  private volatile Long acknowledge;

  private volatile Long acknowledged;
  private boolean unhandled;

  /** A runner whose listener is called on a thread of the runner's. */
  public Runner(
      @NotNull Holdfast app, @NotNull HttpSender sender, @NotNull EventListener listener) {
    this(app, sender, listener, null);
  }

  /**
   * A runner whose listener is called by an executor, for instance that of the thread that draws.
   *
   * @param executor null: a thread of the runner's
   */
  public Runner(
      @NotNull Holdfast app,
      @NotNull HttpSender sender,
      @NotNull EventListener listener,
      @Nullable Executor executor) {
    this.app = app;
    this.listener = listener;
    this.executor = executor;
    workers = new Workers(app, sender, this::completed);
  }

  /** Starts the threads. They end with {@link #close}, or when the handle is closed. */
  @NotNull
  public Runner start() {
    lock.lock();
    try {
      if (shower != null) throw new IllegalStateException("a runner starts once");
      shower = thread("holdfast-events", this::showAll);
      Thread waiter = thread("holdfast-runner", this::waitAll);
      shower.start();
      waiter.start();
    } finally {
      lock.unlock();
    }
    return this;
  }

  private static Thread thread(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  /**
   * Stops polling, waits for the listener and for the requests in flight, and completes these. The
   * handle stays open. One thread may sleep in the library until there is work or the handle is closed,
   * and then ends without a poll.
   */
  @Override
  public void close() {
    stop();
    acknowledgeLast();
    workers.finish();
  }

  /**
   * Stops at once: requests in flight are given up and completed as cancelled. For an app that the
   * system is about to suspend.
   */
  public void cancel() {
    workers.cancel();
    stop();
    workers.finish();
  }

  /** Otherwise the last event, though handled, would come again at the next start. */
  private void acknowledgeLast() {
    Long last = acknowledge;
    if (last == null || last.equals(acknowledged)) return;
    try {
      begin(app.poll(new PollRequest().ack(last).maxEvents(0L)));
    } catch (HoldfastException failure) {
      LOG.log(Level.FINE, "the last events come again", failure);
    }
  }

  private void stop() {
    locked(
        () -> {
          stopping = true;
          // Not when called by the listener, which this would wait for.
          while (polling || showing && Thread.currentThread() != shower)
            changed.awaitUninterruptibly();
        });
  }

  /**
   * Waits until the last poll returned nothing, the listener has handled all events, and nothing is in
   * flight, for at most so many milliseconds: for tests, and for a job in the background. False: the
   * time has passed, or the runner has stopped.
   */
  public boolean awaitIdle(long timeoutMs) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    completed(); // a call may have made work since the last poll
    while (true) {
      lock.lock();
      try {
        while (!stopping && (events != null || !workers.isIdle())) {
          long left = end - System.nanoTime();
          if (left <= 0) return false;
          changed.awaitNanos(left);
        }
        if (stopping) return false;
        if (quiet) return true;
      } finally {
        lock.unlock();
      }
      try {
        if (!pollAll()) return false;
      } catch (HoldfastException.Closed closed) {
        return false;
      }
    }
  }

  /** Changes the state under the lock, and tells the threads that wait for a change. */
  private void locked(Runnable change) {
    lock.lock();
    try {
      changed.signalAll();
      change.run();
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** A request is completed, which may be followed by more. */
  private void completed() {
    locked(() -> quiet = false);
  }

  // ---- polling ----

  /** The work of the thread that waits. */
  private void waitAll() {
    try {
      while (pollAll() && app.await(timeoutMs())) {}
      end(null);
    } catch (HoldfastException.Closed closed) {
      end(null);
    } catch (HoldfastException failure) {
      end(failure);
    }
  }

  /** The time until the next poll is due at the latest; negative: no limit. */
  private int timeoutMs() {
    lock.lock();
    try {
      if (wakeInMs == null) return -1;
      long passed = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - polledAt);
      return (int) Math.min(Math.max(wakeInMs - passed, SHORTEST_WAIT_MS), Integer.MAX_VALUE);
    } finally {
      lock.unlock();
    }
  }

  /** The runner ends by itself. */
  private void end(HoldfastException failure) {
    lock.lock();
    try {
      boolean told = stopping || ended;
      stopping = ended = true;
      changed.signalAll();
      if (told) return;
    } finally {
      lock.unlock();
    }
    listener.onEnd(failure);
  }

  /** Polls until a poll returns nothing. False: the runner stops. Several threads call it. */
  private boolean pollAll() {
    for (boolean again = true; again; ) {
      lock.lock();
      try {
        while (polling && !stopping) changed.awaitUninterruptibly();
        if (stopping) return false;
        polling = true;
      } finally {
        lock.unlock();
      }
      try {
        again = step();
      } finally {
        locked(() -> polling = false);
      }
    }
    return true;
  }

  /** One poll; whether to poll again at once. */
  private boolean step() {
    PollReply work;
    try {
      work = app.poll(request());
    } catch (HoldfastException failure) {
      if (!failure.isRetryable()) throw failure;
      pause();
      return true;
    }
    boolean any = begin(work) || !work.getEvents().isEmpty();
    locked(
        () -> {
          if (!work.getEvents().isEmpty()) events = work.getEvents();
          quiet = !any;
          wakeInMs = work.getWakeInMs();
          polledAt = System.nanoTime();
        });
    return any;
  }

  /** Begins what a poll asks for; whether there was anything. */
  private boolean begin(PollReply work) {
    for (HttpRequest one : work.getRequests()) workers.send(one);
    return !work.getRequests().isEmpty();
  }

  private PollRequest request() {
    lock.lock();
    try {
      acknowledged = acknowledge;
      PollRequest request = new PollRequest().ack(acknowledge);
      if (events != null) return request.maxEvents(0L);
      if (unhandled) request.fromOldest(true);
      unhandled = false;
      return request;
    } finally {
      lock.unlock();
    }
  }

  // ---- events ----

  /** The work of the thread that calls the listener. */
  private void showAll() {
    try {
      while (showNext() && pollAll()) {}
    } catch (HoldfastException.Closed closed) {
      end(null);
    } catch (HoldfastException failure) {
      end(failure);
    }
  }

  /** Waits for events and shows them. False: the runner stops. */
  private boolean showNext() {
    List<Event> shown;
    lock.lock();
    try {
      while (events == null && !stopping) changed.awaitUninterruptibly();
      if (stopping) return false;
      shown = events;
      showing = true;
    } finally {
      lock.unlock();
    }
    boolean handled = false;
    try {
      handled = handle(shown);
    } finally {
      boolean failed = !handled;
      locked(
          () -> {
            showing = false;
            events = null;
            quiet = false; // the poll that follows acknowledges
            unhandled |= failed;
          });
    }
    if (!handled && !declined) pause();
    declined = false;
    return true;
  }

  /** False: not all were handled. The others come again if they are durable. */
  private boolean handle(List<Event> shown) {
    for (Event one : shown) {
      try {
        if (!deliver(one)) return false;
      } catch (CancellationException gone) {
        declined = true;
        return false;
      } catch (Throwable failure) { // the thread goes on for the events that follow
        LOG.log(Level.SEVERE, "the listener failed", failure);
        return false;
      }
      locked(
          () -> acknowledge = acknowledge == null ? one.getSeq() : Math.max(acknowledge, one.getSeq()));
    }
    return true;
  }

  /** False: the runner stops, and the listener was not called, or has called {@link #close}. */
  private boolean deliver(Event event) throws Exception {
    if (executor == null) {
      show(event);
      return true;
    }
    FutureTask<Void> task =
        new FutureTask<Void>(
            () -> {
              show(event);
              return null;
            }) {
          @Override
          protected void done() {
            locked(() -> {});
          }
        };
    executor.execute(task);
    lock.lock();
    try {
      // close() may be called by the executor's thread, which then cannot run the task.
      while (!task.isDone() && !stopping) changed.awaitUninterruptibly();
    } finally {
      lock.unlock();
    }
    if (!task.isDone() && task.cancel(false)) return false;
    try {
      task.get();
    } catch (ExecutionException failed) {
      throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
    }
    return true;
  }

  private void show(Event event) throws Exception {
    if (!app.isSuperseded(event)) listener.onEvent(event);
  }

  /** Waits before the next poll, unless the runner stops. */
  private void pause() {
    long left = PAUSE_MS * 1_000_000;
    lock.lock();
    try {
      while (left > 0 && !stopping) left = changed.awaitNanos(left);
    } catch (InterruptedException ignored) {
      // Only a shorter pause.
    } finally {
      lock.unlock();
    }
  }
}
