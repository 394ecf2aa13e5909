// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.content;

public abstract class Context {
  public abstract java.io.File getNoBackupFilesDir();

  public abstract <T> T getSystemService(Class<T> service);

  public abstract String getString(int resource);

  public abstract Context getApplicationContext();
}
