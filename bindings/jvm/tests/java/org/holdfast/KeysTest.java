package org.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.holdfast.Types.*;
import org.holdfast.jdk.JdkHttpSender;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The key store that the library calls, and the prompt before an unlock. */
@Timeout(900)
class KeysTest {
  private static final SessionUnlockRequest SUCCESS = new SessionUnlockRequest(Outcome.SUCCESS);

  @TempDir Path folder;
  private final PromptingKeyStore keys = new PromptingKeyStore();
  private final Collector events = new Collector();
  private Holdfast app;
  private Runner runner;

  @AfterEach
  void end() {
    if (runner != null) runner.close();
    if (app != null) app.close();
  }

  private void open(KeyStore store) {
    PolicyBiometric presence = PolicyBiometric.REQUIRED;
    Config config = Backend.config(folder.resolve("data")).policy(new Policy().biometric(presence));
    app = Holdfast.open(config, store);
  }

  /** A locked session, and an unlock with its prompt on the screen. */
  private CompletableFuture<Decision> unlocking() throws Exception {
    open(keys);
    runner = new Runner(app, new JdkHttpSender(), events).start();
    app.sessionResume();
    SignInPassword user = new SignInPassword("solo@example.org", Backend.PASSWORD);
    assertEquals(Screen.HOME, events.settled(app.signInComplete(user)).getScreen());
    app.sessionLock();
    return unlock(1);
  }

  private CompletableFuture<Decision> unlock(int prompts) throws Exception {
    CompletableFuture<Decision> shown = CompletableFuture.supplyAsync(() -> app.sessionUnlock(SUCCESS));
    Patience.until(() -> keys.prompts.get() == prompts);
    return shown;
  }

  @Test
  void the_key_that_the_prompt_has_released_unlocks_and_serves_nothing_else() throws Exception {
    CompletableFuture<Decision> unlocked = unlocking();
    // A call does not wait for the prompt
    assertEquals(SessionStatusReplyState.LOCKED, app.sessionStatus().getState());
    keys.user.add(KeyResult.OK);
    assertEquals(Screen.HOME, events.settled(unlocked.get()).getScreen());
    keys.quiet.clear();
    app.sessionLogout();
    assertTrue(keys.quiet.contains("biometric"), "the erasure was not checked");
    assertEquals(1, keys.prompts.get());
  }

  @Test
  void what_the_prompt_refuses_is_the_outcome() throws Exception {
    CompletableFuture<Decision> unlocked = unlocking();
    keys.user.add(KeyResult.LOCKOUT);
    Decision refused = events.settled(unlocked.get());
    assertEquals(Screen.SIGN_IN, refused.getScreen());
    assertEquals("biometric_lockout", refused.getReason().value());
    app.sessionUnlock(new SessionUnlockRequest(Outcome.CANCELLED));
    assertEquals(1, keys.prompts.get(), "an outcome that the app has from elsewhere");
  }

  static List<Consumer<Holdfast>> ends() {
    return List.of(Holdfast::sessionLock, Holdfast::sessionLogout, Holdfast::close);
  }

  @ParameterizedTest
  @MethodSource("ends")
  void a_lock_a_log_out_and_a_close_take_the_prompt_back(Consumer<Holdfast> end) throws Exception {
    CompletableFuture<Decision> unlocked = unlocking();
    end.accept(app);
    try {
      assertNotEquals(Screen.HOME, unlocked.get().getScreen());
    } catch (ExecutionException closed) {
      assertTrue(closed.getCause() instanceof HoldfastException.Closed, closed + "");
    }
    assertEquals(1, keys.withdrawn.get());
  }

  @Test
  void a_second_unlock_takes_the_first_prompt_back_and_has_its_own() throws Exception {
    CompletableFuture<Decision> first = unlocking();
    CompletableFuture<Decision> second = unlock(2);
    first.get();
    keys.user.add(KeyResult.OK);
    assertEquals(Screen.HOME, events.settled(second.get()).getScreen());
    assertEquals(1, keys.withdrawn.get());
  }

  // ---- the calls of the library ----

  /** Loads as the test says; has no keys. */
  private interface Loading extends KeyStore {
    @Override
    default void save(String name, byte[] key, KeyProtection protection) {}

    @Override
    default void erase(String name) {}
  }

  static Stream<Loading> broken() {
    return Stream.of(
        (name, prompt) -> {
          throw new IllegalStateException("out of order");
        },
        (name, prompt) -> {
          throw new StackOverflowError();
        },
        (name, prompt) -> new byte[31],
        (name, prompt) -> new byte[33]);
  }

  @ParameterizedTest
  @MethodSource("broken")
  void a_store_that_breaks_is_one_that_has_failed(Loading store) {
    open(store);
    assertEquals("keystore_failed", app.sessionResume().getReason().value());
  }

  @Test
  void a_call_from_inside_the_store_is_refused() {
    AtomicReference<HoldfastException> refused = new AtomicReference<>();
    open(
        (Loading)
            (name, prompt) -> {
              refused.set(assertThrows(HoldfastException.class, app::sessionStatus));
              return null;
            });
    app.sessionResume();
    assertTrue(refused.get() instanceof HoldfastException.Busy, refused.get() + "");
  }

  @Test
  void an_interrupt_for_the_app_does_not_reach_the_store() {
    AtomicReference<Boolean> seen = new AtomicReference<>();
    open(
        (Loading)
            (name, prompt) -> {
              seen.set(Thread.currentThread().isInterrupted());
              return null;
            });
    Thread.currentThread().interrupt();
    app.sessionResume();
    assertTrue(Thread.interrupted(), "the app's interrupt is still there");
    assertEquals(false, seen.get());
  }

  @Test
  void a_closed_handle_keeps_no_key_store() throws Exception {
    KeyStore given = new PromptingKeyStore();
    WeakReference<KeyStore> store = new WeakReference<>(given);
    open(given);
    given = null;
    app.sessionResume();
    app.close();
    app = null;
    Patience.until(
        () -> {
          System.gc();
          return store.get() == null;
        });
    assertNull(store.get());
  }

  @Test
  void a_saved_key_is_overwritten_afterwards() throws Exception {
    byte[][] saved = new byte[1][];
    KeyStore store =
        new KeyStore() {
          @Override
          public byte[] load(String name, String prompt) {
            return keys.keys.get(name) == null ? null : keys.keys.get(name).clone();
          }

          @Override
          public void save(String name, byte[] key, KeyProtection protection) {
            keys.save(name, key, protection);
            saved[0] = key;
          }

          @Override
          public void erase(String name) {
            keys.erase(name);
          }
        };
    open(store);
    app.sessionResume();
    runner = new Runner(app, new JdkHttpSender(), events).start();
    events.settled(app.signInComplete(new SignInPassword("solo@example.org", Backend.PASSWORD)));
    assertEquals(32, saved[0].length);
    assertFalse(Arrays.equals(saved[0], keys.keys.get("device")));
    assertTrue(Arrays.equals(saved[0], new byte[32]));
  }
}
