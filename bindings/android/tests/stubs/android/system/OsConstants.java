// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.system;

public final class OsConstants {
  public static final int O_RDONLY = 0;

  private OsConstants() {}
}
