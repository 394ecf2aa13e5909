package org.holdfast;

import java.util.concurrent.*;

/** How long a test waits. A limit tells a hang, never a speed; HOLDFAST_PATIENCE multiplies it. */
final class Patience {
  private static final double FACTOR = Double.parseDouble(System.getenv().getOrDefault("HOLDFAST_PATIENCE", "1"));

  private Patience() {}

  static long ms(long seconds) { return (long) (TimeUnit.SECONDS.toMillis(seconds) * FACTOR); }

  /** Waits until the condition holds, or the patience ends: the caller asserts what it waited for. */
  static void until(Callable<Boolean> condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms(60));
    while (!condition.call() && System.nanoTime() < end) Thread.sleep(10);
  }
}
