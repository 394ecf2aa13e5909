package org.holdfast;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import org.holdfast.Types.*;

/** A listener that keeps the events, for tests that wait for one. */
public class Collector implements EventListener {
  private final List<Event> events = new ArrayList<>();

  @Override
  public synchronized void onEvent(Event event) throws Exception {
    events.add(event);
    notifyAll();
  }

  public synchronized List<Event> seen() {
    return new ArrayList<>(events);
  }

  /** The first event of the class that fits; waits for it. */
  public synchronized <T extends Event> T await(Class<T> type, Predicate<T> fits)
      throws InterruptedException, TimeoutException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Patience.ms(60));
    while (true) {
      for (Event one : events)
        if (type.isInstance(one) && fits.test(type.cast(one))) return type.cast(one);
      long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      if (left <= 0) throw new TimeoutException("no " + type.getSimpleName() + " in " + events);
      wait(left);
    }
  }

  /** The decision, or the one that follows a wait. */
  public Decision settled(Decision decision) throws InterruptedException, TimeoutException {
    if (!decision.getScreen().equals(Screen.WAIT)) return decision;
    long number = decision.getNumber();
    return await(
            DecisionEvent.class,
            event ->
                event.getDecision().getNumber() > number
                    && !event.getDecision().getScreen().equals(Screen.WAIT))
        .getDecision();
  }
}
