// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.lifecycle;

public class ProcessLifecycleOwner implements LifecycleOwner {
  private static final ProcessLifecycleOwner PROCESS = new ProcessLifecycleOwner();

  /** The observers, for a test to call. */
  public final java.util.List<DefaultLifecycleObserver> observers = new java.util.ArrayList<>();

  public static ProcessLifecycleOwner get() {
    return PROCESS;
  }

  @Override
  public Lifecycle getLifecycle() {
    return new Lifecycle() {
      @Override
      public void addObserver(DefaultLifecycleObserver observer) {
        observers.add(observer);
      }

      @Override
      public void removeObserver(DefaultLifecycleObserver observer) {
        observers.remove(observer);
      }
    };
  }
}
