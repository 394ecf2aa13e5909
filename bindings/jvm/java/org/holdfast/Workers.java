package org.holdfast;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.holdfast.Types.*;

/** The threads that carry out requests: one for each, so that none waits for a slow one. */
final class Workers {
  private static final Logger LOG = Logger.getLogger("org.holdfast");

  /** The pause before a response is passed on again that the library could not take. */
  private static final long PAUSE_MS = 250;

  private final Holdfast app;
  private final HttpSender sender;
  private final Runnable completed;

  /** Guards the fields below. */
  private final ReentrantLock lock = new ReentrantLock();

  private final Condition changed = lock.newCondition();

  /** The threads, and whether they are inside the sender, which may be interrupted. */
  private final Map<Thread, Boolean> sending = new HashMap<>();

  private boolean cancelled;

  /** {@code completed} is called after each completion. */
  Workers(Holdfast app, HttpSender sender, Runnable completed) {
    this.app = app;
    this.sender = sender;
    this.completed = completed;
  }

  boolean isIdle() {
    lock.lock();
    try {
      return sending.isEmpty();
    } finally {
      lock.unlock();
    }
  }

  /** Waits for the requests. */
  void finish() {
    lock.lock();
    try {
      while (!sending.isEmpty()
          && !(sending.size() == 1 && sending.containsKey(Thread.currentThread())))
        changed.awaitUninterruptibly();
    } finally {
      lock.unlock();
    }
  }

  /** Gives up the requests. */
  void cancel() {
    lock.lock();
    try {
      cancelled = true;
      sending.forEach(
          (one, inside) -> {
            if (inside && one != Thread.currentThread()) one.interrupt();
          });
    } finally {
      lock.unlock();
    }
  }

  void send(HttpRequest request) {
    Thread thread = new Thread(() -> exchange(request), "holdfast-http");
    thread.setDaemon(true);
    lock.lock();
    try {
      sending.put(thread, true);
    } finally {
      lock.unlock();
    }
    thread.start();
  }

  private void exchange(HttpRequest request) {
    try {
      complete(request, result(request));
    } finally {
      lock.lock();
      try {
        sending.remove(Thread.currentThread());
        changed.signalAll();
      } finally {
        lock.unlock();
      }
      completed.run();
    }
  }

  private HttpResult result(HttpRequest request) {
    HttpResult result;
    try {
      result = sender.send(request);
    } catch (Throwable failure) { // also a class that cannot be loaded: the request has an answer
      TransportError word = HttpFailures.of(failure);
      boolean defect = failure instanceof RuntimeException || failure instanceof java.lang.Error;
      LOG.log(defect ? Level.SEVERE : Level.FINE, "no response", failure);
      result = HttpResult.failed(word);
    }
    // What follows is to be done also by a thread that was interrupted, or would be now.
    lock.lock();
    try {
      sending.put(Thread.currentThread(), false);
    } finally {
      lock.unlock();
    }
    boolean interrupted = Thread.interrupted();
    return interrupted && result.getError() != null
        ? HttpResult.failed(TransportError.CANCELLED)
        : result;
  }

  /** Passes the response on, again while the library asks for that: it may have the next token. */
  private void complete(HttpRequest request, HttpResult result) {
    HttpResult passed = result;
    while (true) {
      try {
        app.complete(passed.completing(request.getId()));
        return;
      } catch (HoldfastException.Closed closed) {
        return; // the next open sends the request again
      } catch (HoldfastException.Invalid invalid) {
        if (passed.getError() != null) {
          LOG.log(Level.SEVERE, "a response was lost", invalid);
          return;
        }
        LOG.log(Level.WARNING, "a response cannot be passed on", invalid);
        passed = HttpResult.failed(TransportError.REFUSED);
      } catch (HoldfastException failure) {
        if (!failure.isRetryable() || !pause()) {
          LOG.log(Level.SEVERE, "a response was lost", failure);
          return;
        }
      }
    }
  }

  /** False: the app is about to be suspended, and there is no time for another try. */
  private boolean pause() {
    lock.lock();
    try {
      if (cancelled) return false;
    } finally {
      lock.unlock();
    }
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException ignored) {
      // The next try is the last one.
    }
    return true;
  }
}
