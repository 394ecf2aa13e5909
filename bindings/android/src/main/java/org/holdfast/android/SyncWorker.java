package org.holdfast.android;

import android.content.Context;
import androidx.work.Constraints;
import androidx.work.ExistingWorkPolicy;
import androidx.work.NetworkType;
import androidx.work.OneTimeWorkRequest;
import androidx.work.WorkManager;
import androidx.work.Worker;
import androidx.work.WorkerParameters;
import java.util.concurrent.TimeUnit;
import org.holdfast.Holdfast;
import org.holdfast.HoldfastException;
import org.holdfast.Runner;
import org.holdfast.Types.Counts;
import org.jetbrains.annotations.NotNull;

/**
 * Sends what is queued while the app is not on the screen, as soon as there is a network. The lock's
 * rules hold: after {@code background_timeout_s} nothing is sent until the user returns.
 *
 * <p>The app's Application implements {@link Host}. The worker does not say that a user is present, so
 * it neither resumes nor returns to the foreground.
 */
public final class SyncWorker extends Worker {
  /** A worker has ten minutes. */
  private static final long LIMIT_MS = 9 * 60_000;

  private static final String NAME = "org.holdfast.sync";

  /** What the worker needs of the app: its one handle and its runner. */
  public interface Host {
    /** The app's handle, opened if necessary; called on the worker's thread. */
    @NotNull
    Holdfast holdfast();

    /** The runner of that handle, started. */
    @NotNull
    Runner runner();
  }

  /** For WorkManager. */
  public SyncWorker(@NotNull Context context, @NotNull WorkerParameters parameters) {
    super(context, parameters);
  }

  /** Asks for a run as soon as there is a network; a waiting one is enough. */
  public static void enqueue(@NotNull Context context) {
    OneTimeWorkRequest request =
        new OneTimeWorkRequest.Builder(SyncWorker.class)
            .setConstraints(
                new Constraints.Builder().setRequiredNetworkType(NetworkType.CONNECTED).build())
            .build();
    WorkManager.getInstance(context).enqueueUniqueWork(NAME, ExistingWorkPolicy.KEEP, request);
  }

  @Override
  @NotNull
  public Result doWork() {
    Host host = (Host) getApplicationContext();
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
    try {
      Holdfast app = host.holdfast();
      app.syncNow();
      long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      boolean idle = host.runner().awaitIdle(left);
      Counts counts = app.syncStatus().getCounts();
      boolean sent = counts.getPending() + counts.getSending() == 0;
      return idle && sent ? Result.success() : Result.retry();
    } catch (HoldfastException failure) {
      return failure.isRetryable() ? Result.retry() : Result.failure();
    } catch (InterruptedException stopped) {
      return Result.retry();
    }
  }
}
