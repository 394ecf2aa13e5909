// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.work;

public final class Constraints {
  public static final class Builder {
    public Builder setRequiredNetworkType(NetworkType type) {
      return this;
    }

    public Constraints build() {
      return new Constraints();
    }
  }
}
