// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.system;

public final class Os {
  /** How often something was made durable. */
  public static int synced;

  private Os() {}

  public static java.io.FileDescriptor open(String path, int flags, int mode)
      throws ErrnoException {
    if (!new java.io.File(path).exists()) throw new ErrnoException();
    return new java.io.FileDescriptor();
  }

  public static void fsync(java.io.FileDescriptor opened) throws ErrnoException {
    synced++;
  }

  public static void close(java.io.FileDescriptor opened) throws ErrnoException {}
}
