package org.holdfast.jdk;

import java.io.*;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.nio.file.attribute.*;
import java.security.*;
import javax.crypto.spec.SecretKeySpec;
import org.holdfast.KeyProtection;
import org.holdfast.KeyResult;
import org.holdfast.KeyStore;
import org.holdfast.KeyStoreException;
import org.jetbrains.annotations.*;

/**
 * Keys in a PKCS#12 file under a password, for servers and desktops. Every change writes a new file
 * and renames it. The password comes from the service's own secrets or from the user; whoever reads
 * both has the keys.
 *
 * <p>A file cannot tell whether a user is present, so this store refuses {@code biometric}: set the
 * policy {@code "biometric": "off"}.
 */
public final class Pkcs12KeyStore implements KeyStore {
  private final Path file;
  private final char[] password;

  /** Uses a file outside the data folder; its folder exists, and only this user may read it. */
  public Pkcs12KeyStore(@NotNull Path file, @NotNull char[] password) {
    this.file = file.toAbsolutePath();
    this.password = password.clone();
  }

  @Override
  @Nullable
  public synchronized byte[] load(@NotNull String name, @Nullable String prompt)
      throws GeneralSecurityException, IOException {
    Key key = read().getKey(name, password);
    return key == null ? null : key.getEncoded();
  }

  @Override
  public synchronized void save(@NotNull String name, @NotNull byte[] key, @NotNull KeyProtection protection)
      throws GeneralSecurityException, IOException, KeyStoreException {
    if (protection != KeyProtection.DEVICE) throw new KeyStoreException(KeyResult.UNAVAILABLE);
    java.security.KeyStore keys = read();
    keys.setKeyEntry(name, new SecretKeySpec(key, "AES"), password, null);
    write(keys);
  }

  @Override
  public synchronized void erase(@NotNull String name) throws GeneralSecurityException, IOException {
    java.security.KeyStore keys = read();
    if (!keys.containsAlias(name)) return;
    keys.deleteEntry(name);
    write(keys);
  }

  /** An absent file has no keys. A file that cannot be read, or a wrong password, is an exception. */
  private java.security.KeyStore read() throws GeneralSecurityException, IOException {
    java.security.KeyStore keys = java.security.KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(file)) {
      keys.load(in, password);
    } catch (NoSuchFileException absent) {
      keys.load(null, password);
    }
    return keys;
  }

  private void write(java.security.KeyStore keys) throws GeneralSecurityException, IOException {
    FileAttribute<?> mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
    Path fresh = Files.createTempFile(file.getParent(), file.getFileName().toString(), ".new", mode);
    try {
      try (OutputStream out = Files.newOutputStream(fresh)) {
        keys.store(out, password);
      }
      force(fresh);
      Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      force(file.getParent());
    } finally {
      Files.deleteIfExists(fresh);
    }
  }

  /** To the disk: without that, a power cut could undo an acknowledged save. */
  private static void force(Path path) throws IOException {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }
}
