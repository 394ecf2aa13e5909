package org.holdfast.android;

import static org.junit.jupiter.api.Assertions.*;

import android.security.keystore.*;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.util.*;
import java.util.stream.Stream;
import javax.crypto.*;
import org.holdfast.*;
import org.holdfast.KeyStoreException;
import org.junit.jupiter.api.*;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The key store for Android over a provider that behaves as a device's. */
class AndroidKeyStoreTest {
  private static final byte[] KEY = "\1".repeat(32).getBytes();
  private static final byte[] OTHER = "\2".repeat(32).getBytes();

  @TempDir Path folder;
  private boolean unlocked = true;
  private KeyResult prompt = KeyResult.OK;
  private int prompts;
  private AndroidKeyStore keys;

  @BeforeEach
  void device() {
    FakeAndroidKeyStore.KEYS.clear();
    FakeAndroidKeyStore.failure = null;
    FakeAndroidKeyStore.report = FakeAndroidKeyStore.Report.INIT;
    Security.addProvider(new FakeAndroidKeyStore());
    keys = store(this::shown);
  }

  @AfterEach void end() { Security.removeProvider("AndroidKeyStore"); }

  private AndroidKeyStore store(PromptGate gate) {
    return new AndroidKeyStore(folder.resolve("keys").toFile(), "app.", () -> unlocked, gate);
  }

  private Cipher shown(Cipher cipher, String text) throws KeyStoreException {
    prompts++;
    if (prompt != KeyResult.OK) throw new KeyStoreException(prompt);
    FakeAndroidKeyStore.release();
    return cipher;
  }

  private KeyResult refused(String name, String text) {
    return assertThrows(KeyStoreException.class, () -> keys.load(name, text)).getResult();
  }

  private void save(String name, byte[] key) throws KeyStoreException {
    keys.save(name, key, name.equals("biometric") ? KeyProtection.BIOMETRIC : KeyProtection.DEVICE);
  }

  @Test
  void saves_loads_and_erases_without_a_prompt() throws Exception {
    assertNull(keys.load("device", null));
    save("device", KEY);
    save("session", OTHER);
    assertArrayEquals(KEY, keys.load("device", null));
    assertArrayEquals(OTHER, keys.load("session", null));
    save("session", KEY);
    assertArrayEquals(KEY, keys.load("session", null));
    keys.erase("session");
    keys.erase("session");
    assertNull(keys.load("session", null));
    assertArrayEquals(KEY, keys.load("device", null));
    assertEquals(0, prompts);
    assertEquals(1, FakeAndroidKeyStore.KEYS.size(), "no key is left over");
    assertTrue(android.system.Os.synced >= 4);
  }

  @Test
  void the_files_hold_no_key_in_clear() throws Exception {
    save("device", KEY);
    save("biometric", OTHER);
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path one : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
        String text = Files.readString(one, StandardCharsets.ISO_8859_1);
        assertFalse(text.contains("\1\1\1\1") || text.contains("\2\2\2\2"), one + "");
      }
    }
  }

  /** Without both settings a new enrolment would not invalidate the key. */
  @Test
  void the_pair_needs_strong_biometrics_for_every_use() throws Exception {
    save("biometric", KEY);
    Map<String, Object> asked = FakeAndroidKeyStore.KEYS.values().iterator().next().spec.asked;
    assertEquals(true, asked.get("authentication"));
    assertEquals(true, asked.get("invalidated"));
    assertEquals(List.of(0, 2), asked.get("parameters"));
    assertEquals(2048, asked.get("size"));
    assertEquals(0, prompts, "saving never prompts");
  }

  @Test
  void a_prompt_releases_biometric_once_each() throws Exception {
    save("biometric", KEY);
    assertArrayEquals(KEY, keys.load("biometric", "Unlock"));
    assertArrayEquals(KEY, keys.load("biometric", "Unlock"));
    assertEquals(2, prompts);
    assertEquals(KeyResult.CANCELLED, refused("biometric", null));
    assertEquals(2, prompts, "without a text none is shown");
    prompt = KeyResult.LOCKOUT;
    assertEquals(KeyResult.LOCKOUT, refused("biometric", "Unlock"));
    keys.erase("biometric");
    assertNull(keys.load("biometric", null), "no prompt for an erased key");
    assertNull(keys.load("biometric", "Unlock"));
    assertEquals(3, prompts);
  }

  /** Androids that report success without a usable cipher: the key is not released. */
  @Test
  void a_success_without_the_key_is_a_failure() throws Exception {
    save("biometric", KEY);
    keys = store((cipher, text) -> cipher);
    assertEquals(KeyResult.FAILED, refused("biometric", "Unlock"));
  }

  @ParameterizedTest
  @EnumSource(FakeAndroidKeyStore.Report.class)
  void an_enrolment_invalidates_however_the_device_says_so(FakeAndroidKeyStore.Report report) throws Exception {
    FakeAndroidKeyStore.report = report;
    save("device", OTHER);
    save("biometric", KEY);
    FakeAndroidKeyStore.enrol();
    assertEquals(KeyResult.INVALIDATED, refused("biometric", "Unlock"));
    assertEquals(KeyResult.INVALIDATED, refused("biometric", "Unlock"));
    assertArrayEquals(OTHER, keys.load("device", null));
    // And the next sign-in saves a key that loads: not with the old public key.
    save("biometric", OTHER);
    assertArrayEquals(OTHER, keys.load("biometric", "Unlock"));
    assertEquals(2, FakeAndroidKeyStore.KEYS.size());
    // And an invalidated key can be erased.
    FakeAndroidKeyStore.enrol();
    keys.erase("biometric");
    assertNull(keys.load("biometric", null));
  }

  @Test
  void a_save_that_fails_leaves_the_old_key() throws Exception {
    save("device", KEY);
    Files.createDirectory(folder.resolve("keys/device.new")); // in the way of the new file
    assertThrows(KeyStoreException.class, () -> save("device", OTHER));
    assertArrayEquals(KEY, keys.load("device", null));
    assertEquals(1, FakeAndroidKeyStore.KEYS.size());
  }

  @Test
  void what_does_not_work_is_never_not_found() throws Exception {
    save("device", KEY);
    FakeAndroidKeyStore.failure = new ProviderException("the key store's process is gone");
    assertEquals(KeyResult.FAILED, refused("device", null));
    FakeAndroidKeyStore.failure = null;
    Path file = folder.resolve("keys/device");
    byte[] whole = Files.readAllBytes(file);
    byte[] flipped = whole.clone();
    flipped[flipped.length - 1] ^= 1;
    Files.write(file, flipped);
    assertEquals(KeyResult.FAILED, refused("device", null));
    for (int length = 0; length < whole.length; length++) {
      Files.write(file, Arrays.copyOf(whole, length));
      assertEquals(KeyResult.FAILED, refused("device", null), "cut at " + length);
    }
    Files.write(file, whole);
    assertArrayEquals(KEY, keys.load("device", null));
    unlocked = false;
    assertEquals(KeyResult.LOCKED, refused("device", null));
  }

  /** Files that were restored without their keys, or that outlived an installation. */
  @Test
  void a_file_without_its_key_is_not_found() throws Exception {
    save("device", KEY);
    FakeAndroidKeyStore.KEYS.clear();
    assertNull(keys.load("device", null));
    save("device", OTHER);
    assertArrayEquals(OTHER, keys.load("device", null));
  }

  @Test
  void each_save_has_a_vector_and_an_alias_of_its_own() throws Exception {
    save("device", KEY);
    SealedFile first = SealedFile.read(folder.resolve("keys/device").toFile());
    save("device", KEY);
    SealedFile second = SealedFile.read(folder.resolve("keys/device").toFile());
    assertNotEquals(first.alias, second.alias);
    assertFalse(Arrays.equals(first.vector, second.vector));
  }

  @Test
  void exceptions_have_answers() {
    Map<Throwable, KeyResult> table =
        Map.of(
            new KeyPermanentlyInvalidatedException(), KeyResult.INVALIDATED,
            new IOException(new KeyPermanentlyInvalidatedException()), KeyResult.INVALIDATED,
            new UserNotAuthenticatedException(), KeyResult.CANCELLED,
            new InterruptedException(), KeyResult.CANCELLED,
            new AEADBadTagException(), KeyResult.FAILED,
            new ProviderException(), KeyResult.FAILED,
            new android.security.KeyStoreException("System error"), KeyResult.FAILED,
            new IOException("Key permanently invalidated"), KeyResult.FAILED,
            new KeyStoreException(KeyResult.LOCKED), KeyResult.LOCKED);
    table.forEach((failure, answer) -> assertEquals(answer, AndroidKeyStore.answer(failure).getResult(), failure + ""));
  }
}
