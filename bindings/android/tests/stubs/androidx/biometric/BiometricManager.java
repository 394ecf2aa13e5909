// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.biometric;

public final class BiometricManager {
  private BiometricManager() {}

  public interface Authenticators {
    int BIOMETRIC_STRONG = 15;
  }
}
