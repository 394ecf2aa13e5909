// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.os;

public final class Looper {
  private static final Looper MAIN = new Looper();

  private Looper() {}

  public static Looper getMainLooper() {
    return MAIN;
  }
}
