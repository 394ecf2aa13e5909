// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.work;

public final class OneTimeWorkRequest {
  public static final class Builder {
    public Builder(Class<? extends ListenableWorker> worker) {}

    public Builder setConstraints(Constraints constraints) {
      return this;
    }

    public OneTimeWorkRequest build() {
      return new OneTimeWorkRequest();
    }
  }
}
