package org.holdfast;

import java.util.*;
import java.util.concurrent.*;
import java.util.function.Supplier;
import java.util.logging.*;
import org.jetbrains.annotations.Nullable;

/**
 * Between the library and an app's key store. The library asks for keys inside calls, on their threads,
 * and no call waits for a person: so the prompt for {@code biometric} is shown before {@code
 * session_unlock}, and what the user does is the store's answer inside it.
 */
final class Keys {
  private static final Logger LOG = Logger.getLogger("org.holdfast");
  private static final String PROMPTED = "biometric";
  private static final String UNLOCK = "session_unlock";

  /** Before these calls a prompt on the screen is withdrawn: nobody needs its key afterwards. */
  private static final List<String> ENDS_PROMPT = Arrays.asList("session_lock", "session_logout");

  // The operations of answer().
  private static final int LOAD = 0;
  private static final int SAVE = 1;

  /** What the user did, for the call that follows on this thread. */
  private static final class Released {
    final byte[] key = new byte[32];
    KeyResult result = KeyResult.CANCELLED;
  }

  private final KeyStore store;

  /** The text of the prompt; set when the handle is open. */
  volatile String prompt;

  private final ThreadLocal<Released> released = new ThreadLocal<>();

  /** Held while a prompt is on the screen. */
  private final Object screen = new Object();

  /** The last prompt. Guarded by this. */
  private FutureTask<KeyResult> prompting;

  Keys(KeyStore store) { this.store = store; }

  /**
   * Called by the natives, inside a call and on its thread: a number of HOLDFAST_KEY_*. {@code key} is
   * what a save has, and where a load leaves what it finds.
   */
  int answer(int operation, String name, byte[] key, boolean biometric) {
    boolean interrupted = Thread.interrupted(); // meant for the app: a key store would fail
    KeyResult result = result(() -> {
      Released given = name.equals(PROMPTED) ? released.get() : null;
      if (operation == LOAD && given != null) {
        System.arraycopy(given.key, 0, key, 0, key.length);
        return given.result;
      }
      if (operation == LOAD) return load(name, null, key);
      if (given != null) released.remove(); // from here on it is another key
      if (operation == SAVE)
        store.save(name, key, biometric ? KeyProtection.BIOMETRIC : KeyProtection.DEVICE);
      else store.erase(name);
      return KeyResult.OK;
    });
    if (interrupted) Thread.currentThread().interrupt();
    return result.ordinal();
  }

  private KeyResult load(String name, String text, byte[] key) throws Exception {
    byte[] found = store.load(name, text);
    if (found == null) return KeyResult.NOT_FOUND;
    if (found.length != key.length) throw new IllegalStateException("this is no key");
    System.arraycopy(found, 0, key, 0, key.length);
    Arrays.fill(found, (byte) 0);
    return KeyResult.OK;
  }

  private static KeyResult result(Callable<KeyResult> work) {
    try {
      return work.call();
    } catch (KeyStoreException answer) {
      if (answer.getCause() != null) LOG.log(Level.FINE, "the key store", answer);
      return answer.getResult();
    } catch (InterruptedException withdrawn) {
      return KeyResult.CANCELLED;
    } catch (Throwable failure) { // also a class that cannot be loaded: the library has an answer
      LOG.log(Level.SEVERE, "the key store failed", failure);
      return KeyResult.FAILED;
    }
  }

  // ---- the prompt ----

  /** Makes a call: one that ends a prompt withdraws it, and an unlock shows its own before. */
  <Reply> Reply around(String operation, Supplier<Reply> call) {
    if (!operation.equals(UNLOCK)) {
      if (ENDS_PROMPT.contains(operation)) withdraw(null);
      return call.get();
    }
    Released mine = new Released();
    FutureTask<KeyResult> asking = new FutureTask<>(() -> result(() -> load(PROMPTED, prompt, mine.key)));
    withdraw(asking);
    try {
      synchronized (screen) {
        asking.run(); // unless it was withdrawn
      }
      mine.result = asking.get();
    } catch (Exception withdrawn) {
      Thread.interrupted(); // it was meant for the prompt
    }
    released.set(mine);
    try {
      return call.get();
    } finally {
      Arrays.fill(mine.key, (byte) 0);
      released.remove();
    }
  }

  /** Takes the prompt on the screen back, for the next one. */
  synchronized void withdraw(@Nullable FutureTask<KeyResult> next) {
    if (prompting != null) prompting.cancel(true);
    prompting = next;
  }
}
