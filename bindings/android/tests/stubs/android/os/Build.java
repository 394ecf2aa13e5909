// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.os;

public final class Build {
  private Build() {}

  public static final class VERSION {
    public static int SDK_INT = 34;

    private VERSION() {}
  }
}
