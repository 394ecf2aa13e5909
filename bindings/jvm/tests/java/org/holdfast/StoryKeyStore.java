package org.holdfast;

import java.nio.file.Files;
import java.nio.file.Path;
import org.holdfast.jdk.Pkcs12KeyStore;

/**
 * The key store of the story's device: PKCS#12 files, and a prompt for {@code biometric} that a file
 * answers: the first line of it, which is then removed.
 */
final class StoryKeyStore implements KeyStore {
  private final Pkcs12KeyStore device;
  private final Pkcs12KeyStore biometric;
  private final Path answers;

  StoryKeyStore(Path folder) {
    char[] password = "of the device".toCharArray();
    device = new Pkcs12KeyStore(folder.resolve("device.p12"), password);
    biometric = new Pkcs12KeyStore(folder.resolve("biometric.p12"), password);
    answers = folder.resolve("prompts");
  }

  @Override
  public byte[] load(String name, String prompt) throws Exception {
    if (!name.equals("biometric")) return device.load(name, prompt);
    if (biometric.load(name, null) == null) return null;
    if (prompt == null) throw new KeyStoreException(KeyResult.CANCELLED);
    java.util.List<String> script = Files.readAllLines(answers);
    Files.write(answers, script.subList(1, script.size()));
    if (script.get(0).equals("ok")) return biometric.load(name, null);
    for (KeyResult one : KeyResult.values())
      if (one.value().equals(script.get(0))) throw new KeyStoreException(one);
    throw new IllegalStateException(script.get(0));
  }

  @Override
  public void save(String name, byte[] key, KeyProtection protection) throws Exception {
    Pkcs12KeyStore store = name.equals("biometric") ? biometric : device;
    store.save(name, key, KeyProtection.DEVICE);
  }

  @Override
  public void erase(String name) throws Exception {
    (name.equals("biometric") ? biometric : device).erase(name);
  }
}
