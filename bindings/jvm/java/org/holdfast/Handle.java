package org.holdfast;

import java.lang.ref.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A handle of the library, and the natives (native/holdfast_jni.c). Closing twice, closing while
 * another thread is inside a call, and a call after that are all safe: the library takes a handle as a
 * token and never as a pointer.
 */
final class Handle {
  static {
    NativeLibrary.load();
  }

  /** In each reply of a native: the first byte is the status. */
  static final int REPLY = 1;

  /** In a reply of open: the handle lies between the status and the text. */
  static final int OPEN_REPLY = REPLY + 8;

  private final long token;
  private final Closing closing;

  /** The threads inside {@link #next(int, int)}. */
  private final Inside waiting = new Inside();

  private Handle(long token) {
    this.token = token;
    closing = new Closing(this, token);
  }

  /** The handle in a reply of {@link #open} with the status 0. */
  static Handle in(byte[] reply) { return new Handle(ByteBuffer.wrap(reply).getLong(REPLY)); }

  byte[] call(byte[] operation, byte[] request) { return call(token, operation, request); }

  byte[] next(int what, int timeoutMs) {
    waiting.enter(Thread.currentThread());
    try {
      return next(token, what, timeoutMs);
    } finally {
      waiting.leave(Thread.currentThread());
    }
  }

  /**
   * Closes, and waits until the threads that wait have left: whoever leaves last closes the files. They
   * leave at once.
   */
  void close() {
    closing.close();
    waiting.awaitAll();
  }

  static native byte[] open(byte[] config, Keys keys);

  // The next two are no static methods, so that the JVM keeps this object while they run: else the
  // collector could close the handle inside its last call.
  private native byte[] call(long handle, byte[] operation, byte[] request);

  private native byte[] next(long handle, int what, int timeoutMs);

  private static native void close(long handle);

  static native long live();

  static native String buildInfo();

  static native void log(int level);

  /** Closes a handle that was collected. Android has java.lang.ref.Cleaner only since version 13. */
  private static final class Closing extends PhantomReference<Handle> {
    private static final ReferenceQueue<Handle> COLLECTED = new ReferenceQueue<>();
    private static final Set<Closing> OPEN =
        Collections.newSetFromMap(new ConcurrentHashMap<Closing, Boolean>());

    static {
      Thread thread = new Thread(Closing::closeCollected, "holdfast-collected");
      thread.setDaemon(true);
      thread.setContextClassLoader(null);
      thread.start();
    }

    private final long token;

    Closing(Handle handle, long token) {
      super(handle, COLLECTED);
      this.token = token;
      OPEN.add(this);
    }

    void close() {
      if (OPEN.remove(this)) Handle.close(token);
      clear();
    }

    private static void closeCollected() {
      while (true) {
        try {
          ((Closing) COLLECTED.remove()).close();
        } catch (InterruptedException ignored) {
          // Nobody has a reason to interrupt this thread, and it serves all handles.
        }
      }
    }
  }
}
