package org.holdfast.android;

import androidx.lifecycle.DefaultLifecycleObserver;
import androidx.lifecycle.LifecycleOwner;
import androidx.lifecycle.ProcessLifecycleOwner;
import java.util.concurrent.Executor;
import org.holdfast.Holdfast;
import org.holdfast.HoldfastException;
import org.holdfast.Types.Decision;
import org.jetbrains.annotations.NotNull;

/** Tells the library when the app leaves the screen and when it returns. */
public final class PresenceReport implements DefaultLifecycleObserver, AutoCloseable {
  /** Draws decisions. */
  public interface Drawing {
    /** Draws a decision, if its number is higher than that of the one on the screen. */
    void show(@NotNull Decision decision);
  }

  private final Holdfast app;
  private final Executor executor;
  private final Drawing drawing;
  private boolean left;

  /**
   * Begins to report. Call it on the main thread, after session_resume.
   *
   * @param executor makes the calls, which can write to the disk: not the main thread's
   */
  public PresenceReport(
      @NotNull Holdfast app, @NotNull Executor executor, @NotNull Drawing drawing) {
    this.app = app;
    this.executor = executor;
    this.drawing = drawing;
    ProcessLifecycleOwner.get().getLifecycle().addObserver(this);
  }

  @Override
  public void onStop(LifecycleOwner owner) {
    left = true;
    tell(app::sessionBackground);
  }

  @Override
  public void onStart(LifecycleOwner owner) {
    // The observer is told at once of the state that it finds.
    if (left) tell(app::sessionForeground);
    left = false;
  }

  private interface Call {
    Decision make();
  }

  private void tell(Call call) {
    executor.execute(
        () -> {
          try {
            drawing.show(call.make());
          } catch (HoldfastException.Closed closed) {
            // Nobody is left to be told.
          }
        });
  }

  @Override
  public void close() {
    ProcessLifecycleOwner.get().getLifecycle().removeObserver(this);
  }
}
