package org.holdfast.android;

import android.content.Context;
import androidx.work.*;
import java.util.concurrent.TimeUnit;
import org.holdfast.*;
import org.holdfast.Types.SyncStatusReply;
import org.jetbrains.annotations.NotNull;

/**
 * Sends what is queued while the app is not on the screen, as soon as there is a network. The lock's
 * rules hold: after {@code background_timeout_s} nothing is sent until the user returns.
 *
 * <p>The app's Application implements {@link Host}. Its handle has the role {@code worker}: until a
 * {@link PresenceReport} says so, nobody is at the screen.
 */
public final class SyncWorker extends Worker {
  /** A worker has ten minutes. */
  private static final long LIMIT_MS = 9 * 60_000;

  private static final long LOOK_MS = 200;
  private static final String NAME = "org.holdfast.sync";

  /** What the worker needs of the app. */
  public interface Host {
    /** The app's one handle, with a sender, opened if necessary; called on the worker's thread. */
    @NotNull
    Holdfast holdfast();
  }

  /** For WorkManager. */
  public SyncWorker(@NotNull Context context, @NotNull WorkerParameters parameters) {
    super(context, parameters);
  }

  /** Asks for a run as soon as there is a network; a waiting one is enough. */
  public static void enqueue(@NotNull Context context) {
    Constraints network = new Constraints.Builder().setRequiredNetworkType(NetworkType.CONNECTED).build();
    OneTimeWorkRequest request = new OneTimeWorkRequest.Builder(SyncWorker.class).setConstraints(network).build();
    WorkManager.getInstance(context).enqueueUniqueWork(NAME, ExistingWorkPolicy.KEEP, request);
  }

  @Override
  @NotNull
  public Result doWork() {
    Holdfast app = ((Host) getApplicationContext()).holdfast();
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
    try {
      boolean goesOn = app.syncNow().getStarted();
      while (true) {
        SyncStatusReply status = app.syncStatus();
        if (status.getCounts().getPending() + status.getCounts().getSending() == 0)
          return Result.success();
        if (!goesOn || status.getPause() != null || System.nanoTime() > end) return Result.retry();
        Thread.sleep(LOOK_MS);
      }
    } catch (HoldfastException failure) {
      return failure.isRetryable() ? Result.retry() : Result.failure();
    } catch (InterruptedException stopped) {
      return Result.retry();
    }
  }
}
