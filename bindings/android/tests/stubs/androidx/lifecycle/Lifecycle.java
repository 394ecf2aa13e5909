// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.lifecycle;

public abstract class Lifecycle {
  public abstract void addObserver(DefaultLifecycleObserver observer);

  public abstract void removeObserver(DefaultLifecycleObserver observer);
}
