/** Key stores: the library asks for keys, and these answer. @module */

/** The name of a key. A lost `device` is followed by `device_b`, `device_c`, … */
export type KeyName = 'device' | 'session' | 'biometric' | (string & {});
/** What protects a key: `device`, or `biometric`, which needs the user's presence. */
export type KeyProtection = 'device' | 'biometric';
/** What a key store answers, as HOLDFAST_KEY_*. */
export type KeyResult =
  | ('ok' | 'not_found' | 'locked' | 'cancelled' | 'failed' | 'lockout' | 'lockout_permanent')
  | ('not_enrolled' | 'invalidated' | 'unavailable');

/**
 * The platform's keychain. A key is text (base64 of 32 bytes), as keychains hold text. One
 * operation runs at a time, beside a `load` with a prompt. A method that fails throws a
 * `KeyStoreError`; any other exception counts as `failed`, and so does an answer after 10 s.
 */
export interface KeyStore {
  /**
   * The key; null only if the store works and has no such key. `prompt` is the text for the prompt
   * with which the user releases `biometric`, and may take their time. With null show none: a key
   * that needs one is `cancelled`. `signal` is aborted when nobody needs the key any more, because
   * the user has locked, logged out or asked anew, and when the handle closes: dismiss the prompt,
   * and throw (`signal.reason` will do). Until then, no other prompt comes.
   */
  load(
    name: KeyName,
    prompt: string | null,
    signal: AbortSignal,
  ): Promise<string | null> | string | null;
  /** Store or replace it durably. */
  save(name: KeyName, key: string, protection: KeyProtection): Promise<void> | void;
  /** Remove it; a missing key is no failure. */
  erase(name: KeyName): Promise<void> | void;
}

/** A key store's answer other than the key: `locked`, `cancelled`, `invalidated`, … */
export class KeyStoreError extends Error {
  constructor(readonly result: KeyResult, message: string = result, options?: ErrorOptions) {
    super(message, options);
    this.name = 'KeyStoreError';
  }
}

/** Keys in the memory of this process, for tests. */
export class MemoryKeyStore implements KeyStore {
  readonly keys = new Map<KeyName, string>();

  load(name: KeyName): string | null {
    return this.keys.get(name) ?? null;
  }

  save(name: KeyName, key: string): void {
    this.keys.set(name, key);
  }

  erase(name: KeyName): void {
    this.keys.delete(name);
  }
}

/** What a key store is asked. `protection` and `value` are those of a save; else null. */
export interface KeyQuestion {
  operation: 'load' | 'save' | 'erase';
  name: KeyName;
  protection: KeyProtection | null;
  value: string | null;
}

/** Its answer; `value` is the key that a load has found. */
export interface KeyAnswer {
  result: KeyResult;
  value: string | null;
}

/**
 * Ask a key store. An exception becomes a result; `report` learns of those that are no answer of a
 * key store. After `signal`, such an exception is `cancelled`, and is not reported.
 */
export async function answer(
  store: KeyStore,
  { operation, name, protection, value }: KeyQuestion,
  prompt: string | null,
  report: (error: unknown) => void,
  signal: AbortSignal,
): Promise<KeyAnswer> {
  try {
    if (operation === 'load') {
      const found = await store.load(name, prompt, signal);
      return { result: found === null ? 'not_found' : 'ok', value: found };
    }
    if (operation === 'save') await store.save(name, value ?? '', protection ?? 'device');
    else await store.erase(name);
    return { result: 'ok', value: null };
  } catch (error) {
    if (error instanceof KeyStoreError && error.result !== 'ok') {
      return { result: error.result, value: null };
    }
    if (signal.aborted) return { result: 'cancelled', value: null };
    report(error);
    return { result: 'failed', value: null };
  }
}
