package org.holdfast.android;

import android.content.Context;
import android.os.Build;
import android.os.UserManager;
import android.security.keystore.*;
import java.io.*;
import java.security.*;
import java.security.spec.*;
import java.util.Collections;
import javax.crypto.*;
import javax.crypto.spec.*;
import org.holdfast.KeyProtection;
import org.holdfast.KeyResult;
import org.holdfast.KeyStore;
import org.holdfast.KeyStoreException;
import org.jetbrains.annotations.*;

/**
 * Keys sealed by keys that never leave the Android key store. {@code device} and {@code session} are
 * sealed with AES; {@code biometric} with the public key of an RSA pair, so that saving shows no prompt,
 * and opened with the private one, which strong biometrics release for one use.
 *
 * <p>Every save makes a new key under a new alias, writes the file, which names the alias, and then
 * deletes the old keys. So a save that is cut off leaves what was there; the public key of a pair that
 * an enrolment has invalidated, which still encrypts, is never used again; and erasing means that the
 * old blocks of the file cannot be opened.
 */
public final class AndroidKeyStore implements KeyStore {
  private static final String PROVIDER = "AndroidKeyStore";
  private static final String AES = "AES/GCM/NoPadding";
  private static final String RSA = "RSA/ECB/OAEPWithSHA-256AndMGF1Padding";

  /** MGF1 with SHA-1: the key store has no other on most devices. */
  private static final OAEPParameterSpec OAEP =
      new OAEPParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA1, PSource.PSpecified.DEFAULT);

  private static final int KEY_BYTES = 32;
  private static final int TAG_BITS = 128;

  /** Whether the user has unlocked the device since it started. */
  interface Unlocked {
    boolean now();
  }

  private final File folder;
  private final String prefix;
  private final Unlocked unlocked;
  private final PromptGate gate;
  private final SecureRandom random = new SecureRandom();

  /**
   * Keeps the sealed keys in {@code holdfast-keys} of the folder that backups leave out.
   *
   * @param gate null: without biometrics, for the policy {@code "biometric": "off"}
   */
  public AndroidKeyStore(@NotNull Context context, @Nullable PromptGate gate) {
    this(
        new File(context.getNoBackupFilesDir(), "holdfast-keys"),
        "org.holdfast.",
        () -> context.getSystemService(UserManager.class).isUserUnlocked(),
        gate);
  }

  AndroidKeyStore(File folder, String prefix, Unlocked unlocked, PromptGate gate) {
    this.folder = folder;
    this.prefix = prefix;
    this.unlocked = unlocked;
    this.gate = gate;
  }

  @Override
  @Nullable
  public byte[] load(@NotNull String name, @Nullable String prompt) throws KeyStoreException {
    return answered(() -> {
      SealedFile file = SealedFile.read(file(name));
      if (file == null) return null;
      Key key = keys().getKey(file.alias, null);
      // Without its key the file is one of an earlier installation.
      if (key == null) return null;
      byte[] opened = name.equals("biometric") ? released(file, key, prompt) : opened(file, key);
      if (opened.length != KEY_BYTES) throw new KeyStoreException(KeyResult.FAILED);
      return opened;
    });
  }

  private static byte[] opened(SealedFile file, Key key) throws GeneralSecurityException {
    Cipher cipher = Cipher.getInstance(AES);
    cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, file.vector));
    return cipher.doFinal(file.sealed);
  }

  private byte[] released(SealedFile file, Key key, String prompt) throws Exception {
    Cipher cipher = Cipher.getInstance(RSA);
    cipher.init(Cipher.DECRYPT_MODE, key, OAEP); // an invalidated key is refused without a prompt
    if (prompt == null || gate == null) throw new KeyStoreException(KeyResult.CANCELLED);
    return gate.release(cipher, prompt).doFinal(file.sealed);
  }

  @Override
  public void save(@NotNull String name, @NotNull byte[] key, @NotNull KeyProtection protection)
      throws KeyStoreException {
    answered(() -> {
      if (!folder.isDirectory() && !folder.mkdirs()) throw new IOException("cannot create " + folder.getName());
      String alias = aliases(name) + Long.toHexString(random.nextLong());
      boolean biometric = protection == KeyProtection.BIOMETRIC;
      try {
        (biometric ? sealedForPrompt(alias, key) : sealed(alias, key)).write(file(name));
      } catch (Exception failure) {
        keys().deleteEntry(alias);
        throw failure;
      }
      deleteAliases(name, alias);
      return null;
    });
  }

  private static SealedFile sealed(String alias, byte[] key) throws GeneralSecurityException {
    KeyGenerator generator = KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, PROVIDER);
    generator.init(
        new KeyGenParameterSpec.Builder(
                alias, KeyProperties.PURPOSE_ENCRYPT | KeyProperties.PURPOSE_DECRYPT)
            .setKeySize(256)
            .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
            .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
            .build());
    Cipher cipher = Cipher.getInstance(AES);
    cipher.init(Cipher.ENCRYPT_MODE, generator.generateKey()); // the key store makes the vector
    return new SealedFile(alias, cipher.getIV(), cipher.doFinal(key));
  }

  private static SealedFile sealedForPrompt(String alias, byte[] key) throws GeneralSecurityException {
    KeyGenParameterSpec.Builder wanted =
        new KeyGenParameterSpec.Builder(
                alias, KeyProperties.PURPOSE_ENCRYPT | KeyProperties.PURPOSE_DECRYPT)
            .setKeySize(2048)
            .setDigests(KeyProperties.DIGEST_SHA256, KeyProperties.DIGEST_SHA1)
            .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_RSA_OAEP)
            .setUserAuthenticationRequired(true)
            .setInvalidatedByBiometricEnrollment(true);
    // For every use and by strong biometrics alone: otherwise an enrolment does not invalidate the
    // key. Before Android 11 that is the default.
    if (Build.VERSION.SDK_INT >= 30)
      wanted.setUserAuthenticationParameters(0, KeyProperties.AUTH_BIOMETRIC_STRONG);
    KeyPairGenerator generator = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_RSA, PROVIDER);
    generator.initialize(wanted.build());
    PublicKey made = generator.generateKeyPair().getPublic();
    // A copy without the key store's rules: it would ask for the user to encrypt, too.
    X509EncodedKeySpec plain = new X509EncodedKeySpec(made.getEncoded());
    PublicKey copy = KeyFactory.getInstance(made.getAlgorithm()).generatePublic(plain);
    Cipher cipher = Cipher.getInstance(RSA);
    cipher.init(Cipher.ENCRYPT_MODE, copy, OAEP);
    return new SealedFile(alias, new byte[0], cipher.doFinal(key));
  }

  @Override
  public void erase(@NotNull String name) throws KeyStoreException {
    answered(() -> {
      deleteAliases(name, null); // from here on the file cannot be opened
      if (folder.isDirectory()) SealedFile.delete(file(name));
      return null;
    });
  }

  // ---- what they share ----

  private interface Work {
    byte[] run() throws Exception;
  }

  private byte[] answered(Work work) throws KeyStoreException {
    if (!unlocked.now()) throw new KeyStoreException(KeyResult.LOCKED);
    try {
      return work.run();
    } catch (Exception failure) {
      throw answer(failure);
    }
  }

  /**
   * The library's answer for an exception; what has none of its own is {@code failed}, never {@code
   * not_found}. Devices report an invalidated key when it is fetched, when a cipher is made with it, or
   * when that is used, and some wrap the exception into others, so its causes count too.
   */
  static KeyStoreException answer(Throwable failure) {
    if (failure instanceof KeyStoreException) return (KeyStoreException) failure;
    int depth = 0;
    for (Throwable one = failure; one != null && depth < 16; one = one.getCause(), depth++) {
      if (one instanceof KeyPermanentlyInvalidatedException || saysInvalidated(one))
        return new KeyStoreException(KeyResult.INVALIDATED, failure);
      if (one instanceof UserNotAuthenticatedException || one instanceof InterruptedException)
        return new KeyStoreException(KeyResult.CANCELLED, failure);
    }
    return new KeyStoreException(KeyResult.FAILED, failure);
  }

  /**
   * Before Android 9 a key that was invalidated by an enrolment could not be recovered when it was
   * fetched; the cause, an exception of the system, then has these words.
   */
  private static boolean saysInvalidated(Throwable one) {
    String words = one.getMessage();
    return words != null
        && (one instanceof UnrecoverableKeyException
            || one.getClass().getName().equals("android.security.KeyStoreException"))
        && words.contains("Key permanently invalidated");
  }

  private File file(String name) {
    if (!name.matches("[a-z_]+")) throw new IllegalArgumentException("a name of another kind");
    return new File(folder, name);
  }

  private String aliases(String name) { return prefix + name + "."; }

  /** Deletes the keys that have sealed what has this name, but for one. */
  private void deleteAliases(String name, @Nullable String but)
      throws GeneralSecurityException, IOException {
    java.security.KeyStore keys = keys();
    for (String one : Collections.list(keys.aliases()))
      if (one.startsWith(aliases(name)) && !one.equals(but)) keys.deleteEntry(one);
  }

  private static java.security.KeyStore keys() throws GeneralSecurityException, IOException {
    java.security.KeyStore keys = java.security.KeyStore.getInstance(PROVIDER);
    keys.load(null);
    return keys;
  }
}
