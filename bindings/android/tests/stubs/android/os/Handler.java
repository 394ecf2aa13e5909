// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.os;

public class Handler {
  public Handler(Looper looper) {}

  /** At once, on the caller's thread. */
  public final boolean post(Runnable work) {
    work.run();
    return true;
  }
}
