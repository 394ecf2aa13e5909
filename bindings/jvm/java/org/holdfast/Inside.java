package org.holdfast;

import java.util.*;

/** The threads that are inside something; others wait until all have left. */
final class Inside {
  private final Set<Thread> threads = new HashSet<>();

  synchronized void enter(Thread one) {
    threads.add(one);
  }

  synchronized void leave(Thread one) {
    threads.remove(one);
    notifyAll();
  }

  synchronized void interrupt() {
    for (Thread one : threads) one.interrupt();
  }

  /** Waits for all but the thread that asks; an interrupt is kept for later. */
  synchronized void awaitAll() {
    boolean interrupted = false;
    int mine = threads.contains(Thread.currentThread()) ? 1 : 0;
    while (threads.size() > mine) {
      try {
        wait();
      } catch (InterruptedException late) {
        interrupted = true;
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
  }
}
