// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.os;

public abstract class UserManager {
  public abstract boolean isUserUnlocked();
}
