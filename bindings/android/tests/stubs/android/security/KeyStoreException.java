// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.security;

public class KeyStoreException extends Exception {
  private static final long serialVersionUID = 1;

  public KeyStoreException(String words) {
    super(words);
  }
}
