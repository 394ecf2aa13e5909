// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.system;

public final class ErrnoException extends Exception {
  private static final long serialVersionUID = 1;
}
