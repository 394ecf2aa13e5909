// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.lifecycle;

public interface DefaultLifecycleObserver {
  default void onStart(LifecycleOwner owner) {}

  default void onStop(LifecycleOwner owner) {}
}
