// A declaration of what bindings/android uses, to compile it and to test it without a device.
package android.security.keystore;

/** Keeps what was asked for. */
public final class KeyGenParameterSpec implements java.security.spec.AlgorithmParameterSpec {
  public final String alias;
  public final java.util.Map<String, Object> asked;

  private KeyGenParameterSpec(String alias, java.util.Map<String, Object> asked) {
    this.alias = alias;
    this.asked = asked;
  }

  public static final class Builder {
    private final String alias;
    private final java.util.Map<String, Object> asked = new java.util.TreeMap<>();

    public Builder(String alias, int purposes) {
      this.alias = alias;
      asked.put("purposes", purposes);
    }

    private Builder with(String name, Object value) {
      asked.put(name, value);
      return this;
    }

    public Builder setKeySize(int bits) {
      return with("size", bits);
    }

    public Builder setBlockModes(String... modes) {
      return with("modes", java.util.Arrays.asList(modes));
    }

    public Builder setDigests(String... digests) {
      return with("digests", java.util.Arrays.asList(digests));
    }

    public Builder setEncryptionPaddings(String... paddings) {
      return with("paddings", java.util.Arrays.asList(paddings));
    }

    public Builder setUserAuthenticationRequired(boolean required) {
      return with("authentication", required);
    }

    public Builder setUserAuthenticationParameters(int seconds, int type) {
      return with("parameters", java.util.Arrays.asList(seconds, type));
    }

    public Builder setInvalidatedByBiometricEnrollment(boolean invalidated) {
      return with("invalidated", invalidated);
    }

    public KeyGenParameterSpec build() {
      return new KeyGenParameterSpec(alias, asked);
    }
  }
}
