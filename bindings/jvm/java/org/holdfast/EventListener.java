package org.holdfast;

import java.util.logging.Level;
import java.util.logging.Logger;
import org.holdfast.Types.Event;
import org.jetbrains.annotations.NotNull;
import org.jetbrains.annotations.Nullable;

/** Takes the events of a {@link Runner}. */
public interface EventListener {
  /**
   * Handles an event; when it returns, the event is acknowledged. After an exception a durable event
   * comes again. A {@code CancellationException} declines it for now: it is not logged, and the event
   * comes again at once.
   */
  void onEvent(@NotNull Event event) throws Exception;

  /**
   * The runner ends by itself: the handle was closed, or a poll failed for good. The default writes a
   * failure to the log. Not called after {@link Runner#close}.
   *
   * @param failure null: the handle was closed
   */
  default void onEnd(@Nullable HoldfastException failure) {
    if (failure != null)
      Logger.getLogger("org.holdfast").log(Level.SEVERE, "the runner ends", failure);
  }
}
