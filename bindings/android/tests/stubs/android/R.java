// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android;

public final class R {
  private R() {}

  public static final class string {
    public static final int cancel = 17039360;

    private string() {}
  }
}
