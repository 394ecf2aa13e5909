// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.work;

public abstract class Worker extends ListenableWorker {
  public Worker(android.content.Context context, WorkerParameters parameters) {
    super(context, parameters);
  }

  public abstract Result doWork();
}
