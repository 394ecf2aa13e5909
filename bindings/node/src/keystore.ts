/** Key stores: the library asks for key operations, and these answer. @module */

import type { KeyCompleteRequest, KeyRequest } from './types.js';

/** The name of a key. */
export type KeyName = KeyRequest['name'];
/** What protects a key: `device`, or `biometric`, which needs the user's presence. */
export type KeyProtection = KeyRequest['protection'];
/** What a key store answers, as HOLDFAST_KEY_*. */
export type KeyResult = KeyCompleteRequest['result'];

/**
 * The platform's keychain. A key is text (base64 of 32 bytes), as keychains hold text. The library
 * asks for one operation at a time under each name. A method that fails throws a `KeyStoreError`;
 * any other exception counts as `failed`.
 */
export interface KeyStore {
  /**
   * The key; null only if the store works and has no such key. `prompt` is the text for the prompt
   * with which the user releases `biometric`. With null show none: a key that needs one is
   * `cancelled`. `signal` is aborted when nobody needs the key any more, because the user has locked
   * or asked anew, and when the handle closes: dismiss the prompt, and throw (`signal.reason` will
   * do). Until then, no other prompt comes.
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

/**
 * Carry out a key request. An exception becomes a result; `report` learns of those that are no
 * answer of a key store. After `signal`, such an exception is `cancelled`, and is not reported. A
 * key that the store returns all the same is `ok`: the library ignores the answer to a load that it
 * has withdrawn.
 */
export async function serve(
  store: KeyStore,
  request: KeyRequest,
  report: (error: unknown) => void,
  signal: AbortSignal,
): Promise<KeyCompleteRequest> {
  const { id, name } = request;
  try {
    switch (request.operation) {
      case 'load': {
        const value = await store.load(name, request.prompt, signal);
        return value === null ? { id, result: 'not_found' } : { id, result: 'ok', value };
      }
      case 'save':
        await store.save(name, request.value ?? '', request.protection);
        return { id, result: 'ok' };
      case 'erase':
        await store.erase(name);
        return { id, result: 'ok' };
      default:
        throw new Error(`unknown key operation ${request.operation}`);
    }
  } catch (error) {
    if (error instanceof KeyStoreError && error.result !== 'ok') {
      return { id, result: error.result };
    }
    if (signal.aborted) return { id, result: 'cancelled' };
    report(error);
    return { id, result: 'failed' };
  }
}
