package org.holdfast;

import static org.junit.jupiter.api.Assertions.*;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.file.*;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.holdfast.Types.*;
import org.holdfast.jdk.*;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.*;

/** The key store that the library calls, and the prompt before an unlock. */
@Timeout(900)
class KeysTest {
  @TempDir Path folder;
  private final PromptingKeyStore keys = new PromptingKeyStore();
  private final Collector news = new Collector();
  private Holdfast app;

  @AfterEach
  void end() {
    if (app != null) app.close();
  }

  private void open(KeyStore store) {
    PolicyBiometric presence = PolicyBiometric.REQUIRED;
    Config config = Server.config(folder.resolve("data")).policy(new Policy().biometric(presence));
    app = Holdfast.open(config.keystore(null), new JdkHttpSender(), store);
    app.listen(Runnable::run, news);
  }

  /** A locked session, and an unlock with its prompt on the screen. */
  private CompletableFuture<Void> unlocking() throws Exception {
    open(keys);
    news.signIn(app);
    app.sessionLock();
    news.screen(Screen.UNLOCK);
    return unlock(1);
  }

  private CompletableFuture<Void> unlock(int prompts) throws Exception {
    CompletableFuture<Void> call = CompletableFuture.runAsync(() -> app.sessionUnlock());
    Patience.until(() -> keys.prompts.get() == prompts);
    return call;
  }

  @Test
  void the_key_that_the_prompt_has_released_unlocks_and_serves_nothing_else() throws Exception {
    CompletableFuture<Void> unlocked = unlocking();
    // A call does not wait for the prompt
    assertEquals(SessionStatusReplyState.LOCKED, app.sessionStatus().getState());
    keys.user.add(KeyResult.OK);
    unlocked.get();
    news.screen(Screen.HOME);
    keys.quiet.clear();
    app.sessionLogout();
    assertTrue(keys.quiet.contains("biometric"), "the erasure was not checked");
    assertEquals(1, keys.prompts.get());
  }

  @ParameterizedTest
  @CsvSource({
    "CANCELLED, biometric_cancelled",
    "LOCKOUT, biometric_lockout",
    "NOT_ENROLLED, biometric_not_enrolled",
    "INVALIDATED, key_lost"
  })
  void what_the_prompt_refuses_is_the_outcome(KeyResult answer, String reason) throws Exception {
    CompletableFuture<Void> refused = unlocking();
    keys.user.add(answer);
    refused.get();
    assertEquals(reason, news.screen(Screen.SIGN_IN).getMessage().getCode().value());
    assertEquals(1, keys.prompts.get());
  }

  static List<Consumer<Holdfast>> ends() {
    return List.of(Holdfast::sessionLock, Holdfast::sessionLogout, Holdfast::close);
  }

  @ParameterizedTest
  @MethodSource("ends")
  void a_lock_a_log_out_and_a_close_take_the_prompt_back(Consumer<Holdfast> end) throws Exception {
    CompletableFuture<Void> unlocked = unlocking();
    end.accept(app);
    try {
      unlocked.get();
      assertNotEquals(SessionStatusReplyState.ACTIVE, app.sessionStatus().getState());
    } catch (ExecutionException | HoldfastException.Closed closed) {
      assertTrue((closed + "").contains("HoldfastException$Closed"), closed + "");
    }
    assertEquals(1, keys.withdrawn.get());
  }

  @Test
  void a_second_unlock_takes_the_first_prompt_back_and_has_its_own() throws Exception {
    CompletableFuture<Void> first = unlocking();
    CompletableFuture<Void> second = unlock(2);
    first.get();
    keys.user.add(KeyResult.OK);
    second.get();
    news.screen(Screen.HOME);
    assertEquals(1, keys.withdrawn.get());
  }

  // ---- the calls of the library ----

  static Stream<Callable<byte[]>> broken() {
    return Stream.of(
        () -> {
          throw new IllegalStateException("out of order");
        },
        () -> {
          throw new StackOverflowError();
        },
        () -> new byte[31],
        () -> new byte[33]);
  }

  @ParameterizedTest
  @MethodSource("broken")
  void a_store_that_breaks_is_one_that_has_failed(Callable<byte[]> loading) {
    keys.loading = loading;
    open(keys);
    assertEquals("keystore_failed", app.getScreen().getMessage().getCode().value());
  }

  @Test
  void an_interrupt_for_the_app_does_not_reach_the_store() {
    AtomicReference<Boolean> seen = new AtomicReference<>();
    keys.loading = () -> {
      seen.set(Thread.currentThread().isInterrupted());
      return null;
    };
    open(keys);
    Thread.currentThread().interrupt();
    app.sessionLock();
    assertTrue(Thread.interrupted(), "the app's interrupt is still there");
    assertEquals(false, seen.get());
  }

  @Test
  void a_closed_handle_keeps_no_key_store() throws Exception {
    KeyStore given = new PromptingKeyStore();
    WeakReference<KeyStore> store = new WeakReference<>(given);
    open(given);
    given = null;
    app.close();
    app = null;
    Patience.until(() -> {
      System.gc();
      return store.get() == null;
    });
    assertNull(store.get());
  }

  @Test
  void a_saved_key_is_overwritten_afterwards() throws Exception {
    open(keys);
    news.signIn(app);
    assertArrayEquals(new byte[32], keys.given);
    assertFalse(Arrays.equals(new byte[32], keys.keys.get("device")));
  }

  /** A key store that fails for the moment signs nobody out. */
  @Test
  void a_key_store_that_fails_is_asked_again() throws Exception {
    keys.loading = () -> {
      throw new KeyStoreException(KeyResult.LOCKED);
    };
    open(keys);
    assertEquals("host", app.getOpened().getKeystore().value());
    assertEquals("keystore_locked", app.getScreen().getMessage().getCode().value());
    keys.loading = null;
    app.sessionResume();
    news.screen(Screen.SIGN_IN);
  }

  @Test
  void keys_in_a_pkcs12_file() throws Exception {
    Path file = folder.resolve("keys.p12");
    Pkcs12KeyStore store = new Pkcs12KeyStore(file, "secret".toCharArray());
    assertNull(store.load("device", null), "an absent file has no keys");
    byte[] key = "\7".repeat(32).getBytes();
    store.save("device", key, KeyProtection.DEVICE);
    store.save("session", new byte[32], KeyProtection.DEVICE);
    Pkcs12KeyStore again = new Pkcs12KeyStore(file, "secret".toCharArray());
    assertArrayEquals(key, again.load("device", null));
    again.erase("session");
    again.erase("session");
    assertNull(store.load("session", null));
    KeyStoreException refused =
        assertThrows(KeyStoreException.class, () -> store.save("biometric", key, KeyProtection.BIOMETRIC));
    assertEquals(KeyResult.UNAVAILABLE, refused.getResult());
    // A wrong password, or a damaged file, is never "not found".
    Pkcs12KeyStore wrong = new Pkcs12KeyStore(file, "wrong".toCharArray());
    assertThrows(IOException.class, () -> wrong.load("device", null));
    Files.write(file, new byte[] {1, 2, 3});
    assertThrows(IOException.class, () -> store.load("device", null));
    assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
    try (Stream<Path> files = Files.list(folder)) {
      assertEquals(1, files.filter(one -> one.toString().contains(".p12")).count());
    }
  }
}
