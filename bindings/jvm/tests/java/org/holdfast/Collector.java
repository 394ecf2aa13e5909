package org.holdfast;

import java.util.*;
import java.util.concurrent.*;
import java.util.function.Predicate;
import org.holdfast.Types.*;

/** A listener that keeps the news, for tests that wait for some of it. */
public class Collector implements NewsListener {
  private final List<NextReply> things = new ArrayList<>();
  private int awaited;

  @Override
  public synchronized void onNews(NextReply thing) throws Exception {
    things.add(thing);
    notifyAll();
  }

  public synchronized List<NextReply> seen() { return new ArrayList<>(things); }

  /** The next thing of the class that fits, behind the last one that was awaited; waits for it. */
  public synchronized <T extends NextReply> T await(Class<T> type, Predicate<T> fits)
      throws InterruptedException, TimeoutException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Patience.ms(60));
    while (true) {
      while (awaited < things.size()) {
        NextReply one = things.get(awaited++);
        if (type.isInstance(one) && fits.test(type.cast(one))) return type.cast(one);
      }
      long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      if (left <= 0) throw new TimeoutException("no " + type.getSimpleName() + " in " + things);
      wait(left);
    }
  }

  /** The next decision for this screen. */
  public Decision screen(Screen screen) throws InterruptedException, TimeoutException {
    return await(NextScreen.class, one -> one.getScreen().getScreen().equals(screen)).getScreen();
  }

  /** Signs the user with one organisation in. */
  public void signIn(Holdfast app) throws InterruptedException, TimeoutException {
    app.signInComplete(Server.SOLO);
    screen(Screen.HOME);
  }
}
