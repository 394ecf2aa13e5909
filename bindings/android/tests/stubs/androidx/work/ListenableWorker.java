// A declaration of what bindings/android uses, to compile it and to test it without a device.
package androidx.work;

public abstract class ListenableWorker {
  private final android.content.Context context;

  public ListenableWorker(android.content.Context context, WorkerParameters parameters) {
    this.context = context;
  }

  public final android.content.Context getApplicationContext() {
    return context.getApplicationContext();
  }

  public abstract static class Result {
    private static Result named(String name) {
      return new Result() {
        @Override
        public String toString() {
          return name;
        }
      };
    }

    public static Result success() {
      return named("success");
    }

    public static Result retry() {
      return named("retry");
    }

    public static Result failure() {
      return named("failure");
    }
  }
}
