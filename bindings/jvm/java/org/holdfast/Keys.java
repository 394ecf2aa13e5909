package org.holdfast;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Between the library and an app's key store. The library asks for keys inside calls, on their threads,
 * and no call waits for a person: so the prompt for {@code biometric} is shown before the call that
 * needs that key, and the key is kept for this call alone.
 */
final class Keys {
  private static final Logger LOG = Logger.getLogger("org.holdfast");

  // The operations of answer().
  private static final int LOAD = 0;
  private static final int SAVE = 1;

  /** After these calls, nobody needs the key that a prompt on the screen would release. */
  private static final List<String> ENDS_PROMPT =
      Arrays.asList("session_unlock", "session_lock", "session_logout");

  /** The answers that are no outcome of a prompt: the library asks for the key, and learns of them. */
  private static final Set<KeyResult> NO_OUTCOMES =
      EnumSet.of(KeyResult.OK, KeyResult.NOT_FOUND, KeyResult.LOCKED);

  static final FutureTask<KeyResult> NO_PROMPT = new FutureTask<>(() -> KeyResult.CANCELLED);

  private final KeyStore store;

  /** The text of the prompt; set when the handle is open. */
  volatile String prompt;

  /** The key that the user has released, for the call that follows on this thread. */
  private final ThreadLocal<byte[]> released = new ThreadLocal<>();

  /** Held while a prompt is on the screen. */
  private final Object screen = new Object();

  /** The last prompt. Guarded by this. */
  private FutureTask<KeyResult> prompting = NO_PROMPT;

  Keys(KeyStore store) {
    this.store = store;
  }

  /**
   * Called by the natives, inside a call and on its thread: a number of HOLDFAST_KEY_*. {@code key} is
   * what a save has, and where a load leaves what it finds.
   */
  int answer(int operation, String name, byte[] key, boolean biometric) {
    boolean interrupted = Thread.interrupted(); // meant for the app: a key store would fail
    KeyResult result =
        result(
            () -> {
              if (operation == LOAD) return load(name, null, key);
              if (operation == SAVE)
                store.save(name, key, biometric ? KeyProtection.BIOMETRIC : KeyProtection.DEVICE);
              else store.erase(name);
              return KeyResult.OK;
            });
    if (interrupted) Thread.currentThread().interrupt();
    return result.ordinal();
  }

  private KeyResult load(String name, String text, byte[] key) throws Exception {
    byte[] given = name.equals("biometric") ? released.get() : null;
    byte[] found = given == null ? store.load(name, text) : given.clone();
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

  /** Before a call: withdraws a prompt that it ends, and shows that of an unlock. */
  Map<String, ?> before(String operation, Map<String, ?> request) {
    if (!ENDS_PROMPT.contains(operation)) return request;
    byte[] key = new byte[32];
    FutureTask<KeyResult> mine =
        new FutureTask<>(() -> result(() -> load("biometric", prompt, key)));
    withdraw(mine);
    Object outcome = request.get("outcome");
    if (!"success".equals(outcome instanceof Code ? ((Code) outcome).value() : outcome))
      return request;
    KeyResult result = KeyResult.CANCELLED;
    try {
      synchronized (screen) {
        mine.run(); // unless it was withdrawn
      }
      result = mine.get();
    } catch (Exception withdrawn) {
      Thread.interrupted(); // it was meant for the prompt
    }
    if (result == KeyResult.OK) released.set(key);
    Map<String, Object> told = new LinkedHashMap<>(request);
    if (!NO_OUTCOMES.contains(result)) told.put("outcome", result);
    return told;
  }

  /** After the call. */
  void after() {
    byte[] key = released.get();
    if (key != null) Arrays.fill(key, (byte) 0);
    released.remove();
  }

  /** Takes the prompt on the screen back. */
  synchronized void withdraw(FutureTask<KeyResult> next) {
    prompting.cancel(true);
    prompting = next;
  }
}
