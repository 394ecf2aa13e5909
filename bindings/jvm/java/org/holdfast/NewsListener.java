package org.holdfast;

import org.holdfast.Types.NextReply;
import org.jetbrains.annotations.NotNull;

/** Takes the news of a handle, one at a time. */
public interface NewsListener {
  /**
   * Shows a thing. When it returns, the next thing is asked for, which acknowledges a notice. An
   * exception is logged.
   */
  void onNews(@NotNull NextReply thing) throws Exception;
}
