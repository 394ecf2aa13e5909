// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.security.keystore;

public class UserNotAuthenticatedException extends java.security.InvalidKeyException {
  private static final long serialVersionUID = 1;
}
