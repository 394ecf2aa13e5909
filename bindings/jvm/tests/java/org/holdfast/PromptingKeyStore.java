package org.holdfast;

import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

/** Keys in memory, and a prompt that stays on the screen until a test answers it. */
public final class PromptingKeyStore implements KeyStore {
  public final AtomicInteger prompts = new AtomicInteger();
  public final AtomicInteger withdrawn = new AtomicInteger();
  final Map<String, byte[]> keys = new ConcurrentHashMap<>();
  /** What every load does instead. */
  volatile Callable<byte[]> loading;

  /** The array of the last save. */
  byte[] given;

  /** The keys that were loaded without a prompt. */
  final List<String> quiet = new CopyOnWriteArrayList<>();
  /** What the user does: OK, or another answer. */
  final BlockingQueue<KeyResult> user = new LinkedBlockingQueue<>();

  @Override
  public byte[] load(String name, String prompt) throws Exception {
    if (loading != null) return loading.call();
    if (prompt == null) quiet.add(name);
    byte[] key = keys.get(name);
    if (key == null || !name.equals("biometric")) return key == null ? null : key.clone();
    if (prompt == null) throw new KeyStoreException(KeyResult.CANCELLED);
    prompts.incrementAndGet();
    try {
      KeyResult answer = user.take();
      if (answer != KeyResult.OK) throw new KeyStoreException(answer);
    } catch (InterruptedException taken) {
      withdrawn.incrementAndGet();
      throw taken;
    }
    return key.clone();
  }

  @Override
  public void save(String name, byte[] key, KeyProtection protection) {
    keys.put(name, key.clone());
    given = key;
  }

  @Override public void erase(String name) { keys.remove(name); }
}
