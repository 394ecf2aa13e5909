package org.holdfast;

import java.util.logging.*;
import org.holdfast.Types.*;

/** Sends the requests of a handle: a thread takes them, and each is sent on a thread of its own. */
final class Sending {
  private static final Logger LOG = Logger.getLogger("org.holdfast");

  private final Holdfast app;
  private final HttpSender sender;
  private final Inside threads = new Inside();
  private volatile boolean ends;

  Sending(Holdfast app, HttpSender sender) {
    this.app = app;
    this.sender = sender;
  }

  static Thread thread(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  void start() { thread("holdfast-requests", this::takeAll).start(); }

  private void takeAll() {
    for (NextReply it; (it = app.nextRequest()) != null && !ends; ) {
      if (!(it instanceof NextRequest)) continue;
      begin(((NextRequest) it).getRequest());
    }
  }

  private void begin(HttpRequest request) {
    Thread one = null;
    try {
      one = thread("holdfast-http", () -> exchange(request));
      threads.enter(one);
      one.start();
    } catch (Throwable none) { // too many threads: the request has an answer, and the next ones come
      LOG.log(Level.WARNING, "no thread for a request", none);
      threads.leave(one);
      complete(request, new HttpFailure(request.getId(), TransportError.OFFLINE));
    }
  }

  private void exchange(HttpRequest request) {
    try {
      CompleteRequest result = result(request);
      Thread.interrupted(); // it was meant for the sender
      complete(request, result);
    } finally {
      threads.leave(Thread.currentThread());
    }
  }

  private void complete(HttpRequest request, CompleteRequest result) {
    try {
      app.complete(result);
    } catch (HoldfastException.Invalid malformed) {
      LOG.log(Level.WARNING, "a response cannot be passed on", malformed);
      complete(request, new HttpFailure(request.getId(), TransportError.REFUSED));
    } catch (HoldfastException failure) {
      LOG.log(Level.FINE, "a response is lost", failure); // closed: the next open sends it again
    }
  }

  private CompleteRequest result(HttpRequest request) {
    try {
      return sender.send(request);
    } catch (Throwable failure) { // also a class that cannot be loaded: the request has an answer
      boolean defect = failure instanceof RuntimeException || failure instanceof java.lang.Error;
      LOG.log(defect ? Level.SEVERE : Level.FINE, "no response", failure);
      return new HttpFailure(request.getId(), Http.failure(failure));
    }
  }

  void cancel() { threads.interrupt(); }

  /** Takes no more requests, and waits for those in flight. */
  void finish() {
    ends = true;
    threads.awaitAll();
  }
}
