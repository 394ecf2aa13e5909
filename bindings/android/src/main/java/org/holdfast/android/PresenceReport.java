package org.holdfast.android;

import androidx.lifecycle.*;
import java.util.concurrent.Executor;
import org.holdfast.*;
import org.jetbrains.annotations.NotNull;

/**
 * Tells the library when the app leaves the screen and when it returns, or comes for the first time. The
 * screen to show is among the news.
 */
public final class PresenceReport implements DefaultLifecycleObserver, AutoCloseable {
  private final Holdfast app;
  private final Executor executor;

  /**
   * Begins to report. Call it on the main thread.
   *
   * @param executor makes the calls, which can write to the disk: not the main thread's
   */
  public PresenceReport(@NotNull Holdfast app, @NotNull Executor executor) {
    this.app = app;
    this.executor = executor;
    ProcessLifecycleOwner.get().getLifecycle().addObserver(this);
  }

  @Override public void onStop(LifecycleOwner owner) { tell(executor, app::sessionBackground); }

  @Override public void onStart(LifecycleOwner owner) { tell(executor, app::sessionForeground); }

  static void tell(Executor executor, Runnable call) {
    executor.execute(() -> {
      try {
        call.run();
      } catch (HoldfastException.Closed closed) {
        // Nobody is left to be told.
      }
    });
  }

  @Override public void close() { ProcessLifecycleOwner.get().getLifecycle().removeObserver(this); }
}
