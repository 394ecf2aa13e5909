// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.security.keystore;

public final class KeyProperties {
  public static final int PURPOSE_ENCRYPT = 1;
  public static final int PURPOSE_DECRYPT = 2;
  public static final int AUTH_BIOMETRIC_STRONG = 2;
  public static final String KEY_ALGORITHM_AES = "AES";
  public static final String KEY_ALGORITHM_RSA = "RSA";
  public static final String BLOCK_MODE_GCM = "GCM";
  public static final String ENCRYPTION_PADDING_NONE = "NoPadding";
  public static final String ENCRYPTION_PADDING_RSA_OAEP = "OAEPPadding";
  public static final String DIGEST_SHA1 = "SHA-1";
  public static final String DIGEST_SHA256 = "SHA-256";

  private KeyProperties() {}
}
