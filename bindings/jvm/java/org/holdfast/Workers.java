package org.holdfast;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.holdfast.Types.*;

/**
 * The threads that carry out requests: one for each HTTP request, so that none waits for a slow one,
 * and one for each name of a key, whose operations follow each other.
 */
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
  private final Set<Thread> sending = new HashSet<>();

  /** For each name that a thread serves, the requests that follow. */
  private final Map<String, List<KeyRequest>> keyRequests = new HashMap<>();

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
      return sending.isEmpty() && keyRequests.isEmpty();
    } finally {
      lock.unlock();
    }
  }

  /** Waits for the HTTP requests. A key request may wait for the user, so not for those. */
  void finish() {
    lock.lock();
    try {
      while (!sending.isEmpty()
          && !(sending.size() == 1 && sending.contains(Thread.currentThread())))
        changed.awaitUninterruptibly();
    } finally {
      lock.unlock();
    }
  }

  /** Gives up the HTTP requests. */
  void cancel() {
    lock.lock();
    try {
      cancelled = true;
      for (Thread one : sending) if (one != Thread.currentThread()) one.interrupt();
    } finally {
      lock.unlock();
    }
  }

  // ---- HTTP ----

  void send(HttpRequest request) {
    Thread thread = new Thread(() -> exchange(request), "holdfast-http");
    thread.setDaemon(true);
    lock.lock();
    try {
      sending.add(thread);
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
    // What follows is to be done also by a thread that was interrupted.
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

  // ---- keys ----

  void serve(KeyRequest request) {
    if (app.keys() == null) {
      LOG.severe("a key was asked for: pass a key store to Holdfast.open");
      return;
    }
    String name = request.getName().value();
    lock.lock();
    try {
      List<KeyRequest> waiting = keyRequests.get(name);
      if (waiting != null) {
        waiting.add(request);
        return;
      }
      keyRequests.put(name, new ArrayList<>());
    } finally {
      lock.unlock();
    }
    Thread thread = new Thread(() -> serveAll(name, request), "holdfast-key-" + name);
    thread.setDaemon(true);
    thread.start();
  }

  private void serveAll(String name, KeyRequest first) {
    for (KeyRequest one = first; one != null; one = following(name)) complete(one);
  }

  /** The next request for this name; null: there is none, and the thread ends. */
  private KeyRequest following(String name) {
    KeyRequest next = null;
    lock.lock();
    try {
      List<KeyRequest> waiting = keyRequests.get(name);
      if (waiting.isEmpty()) keyRequests.remove(name);
      else next = waiting.remove(0);
    } finally {
      lock.unlock();
    }
    completed.run();
    return next;
  }

  private void complete(KeyRequest request) {
    KeyCompleteRequest outcome = outcome(request);
    while (true) {
      try {
        app.keyComplete(outcome);
        return;
      } catch (HoldfastException.Closed closed) {
        return;
      } catch (HoldfastException failure) {
        if (!failure.isRetryable() || !pause()) {
          LOG.log(Level.SEVERE, "a key's outcome was lost", failure);
          return;
        }
      }
    }
  }

  private KeyCompleteRequest outcome(KeyRequest request) {
    try {
      return carriedOut(request);
    } catch (KeyStoreException answer) {
      if (answer.getCause() != null) LOG.log(Level.FINE, "the key store", answer);
      return new KeyCompleteRequest(request.getId(), answer.getResult());
    } catch (Throwable failure) { // also a class that cannot be loaded: the request has an answer
      LOG.log(Level.SEVERE, "the key store failed", failure);
      return new KeyCompleteRequest(request.getId(), KeyCompleteRequestResult.FAILED);
    }
  }

  private KeyCompleteRequest carriedOut(KeyRequest request) throws Exception {
    String name = request.getName().value();
    KeyRequestOperation operation = request.getOperation();
    KeyCompleteRequestResult result = KeyCompleteRequestResult.OK;
    byte[] key = null;
    try {
      switch (operation.known()) {
        case LOAD:
          key = app.keys().load(name, request.getPrompt());
          if (key == null) result = KeyCompleteRequestResult.NOT_FOUND;
          break;
        case SAVE:
          key = Base64.decode(String.valueOf(request.getValue()));
          app.keys().save(name, key, request.getProtection());
          break;
        case ERASE:
          app.keys().erase(name);
          break;
        default:
          throw new IllegalArgumentException("an operation of a later version: " + operation);
      }
      KeyCompleteRequest outcome = new KeyCompleteRequest(request.getId(), result);
      if (operation.equals(KeyRequestOperation.LOAD) && key != null)
        outcome.value(Base64.encode(key));
      return outcome;
    } finally {
      if (key != null) Arrays.fill(key, (byte) 0);
    }
  }
}
