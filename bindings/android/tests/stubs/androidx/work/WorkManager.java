// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.work;

public abstract class WorkManager {
  /** A test's. */
  public static WorkManager instance;

  public static WorkManager getInstance(android.content.Context context) {
    return instance;
  }

  public abstract void enqueueUniqueWork(
      String name, ExistingWorkPolicy policy, OneTimeWorkRequest request);
}
