/** Keys in files that Electron's `safeStorage` encrypts with the system's keychain. @module */

import { Buffer } from 'node:buffer';
import { constants } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyStoreError } from './keystore.js';
import type { KeyName, KeyProtection, KeyStore } from './keystore.js';

/** Electron's `safeStorage`, or another object that encrypts short texts. */
export interface SafeStorage {
  isEncryptionAvailable(): boolean;
  encryptString(text: string): Uint8Array | Promise<Uint8Array>;
  decryptString(encrypted: Uint8Array): string | Promise<string>;
  /** Linux: which keychain is used. */
  getSelectedStorageBackend?(): string;
}

/**
 * Asks the user to show that they are there, with this text: on a Mac
 * `(prompt) => systemPreferences.promptTouchID(prompt)`. Rejects if they do not: with a
 * `KeyStoreError`, or with anything else, which counts as `cancelled`. A prompt of one's own listens
 * to `signal`: it is aborted when nobody needs the answer any more.
 */
export type VerifyUser = (prompt: string, signal: AbortSignal) => Promise<void>;

/**
 * One file for each key, with mode 0600, in a folder apart from the data.
 *
 * Before the app is ready, and while there is no keychain, keys are `locked`: the library asks again.
 * `basic_text`, which encrypts with a password that everybody knows, is refused.
 *
 * `safeStorage` does not verify the user's presence. Without `verifyUser` the key `biometric` is
 * `unavailable`. With it, that key is read only after `verifyUser` has resolved; the app asks, not
 * the keychain, so another program of this user could read the key without being asked.
 */
export class SafeStorageKeyStore implements KeyStore {
  readonly #storage: SafeStorage;
  readonly #folder: string;
  readonly #verifyUser: VerifyUser | undefined;

  /** `folder` is created with mode 0700 when the first key is saved. */
  constructor(storage: SafeStorage, folder: string, options: { verifyUser?: VerifyUser } = {}) {
    this.#storage = storage;
    this.#folder = folder;
    this.#verifyUser = options.verifyUser;
  }

  async load(
    name: KeyName,
    prompt: string | null,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<string | null> {
    const file = await this.#open(name, constants.O_RDONLY);
    if (!file) return null;
    const encrypted = await file.readFile().finally(() => file.close());
    // An erasure that did not end has left zeros; what it erased is gone.
    if (encrypted.every((byte) => byte === 0)) return null;
    this.#check();
    if (name === 'biometric') await this.#ask(prompt, signal);
    return this.#storage.decryptString(encrypted);
  }

  /** Writes a file beside and renames it: a power cut leaves the old or the new key. */
  async save(name: KeyName, key: string, protection: KeyProtection): Promise<void> {
    if (protection !== 'device' && !this.#verifyUser) throw new KeyStoreError('unavailable');
    this.#check();
    const encrypted = await this.#storage.encryptString(key);
    // A rename would leave the bytes of the session's old key on the disk.
    if (name === 'session') await this.erase(name);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await this.#checkFolder();
    const beside = `${this.#path(name)}.new`;
    await rm(beside, { force: true });
    await this.#write(await open(beside, 'wx', 0o600), encrypted);
    await rename(beside, this.#path(name));
    await this.#sync();
  }

  /** Overwrites and removes the file. A flash disk may keep the old bytes for a while. */
  async erase(name: KeyName): Promise<void> {
    const file = await this.#open(name, constants.O_RDWR);
    if (!file) return;
    await this.#write(file, Buffer.alloc((await file.stat()).size));
    await rm(this.#path(name), { force: true });
    await this.#sync();
  }

  #path(name: KeyName): string {
    if (!/^[a-z_]{1,32}$/.test(name)) throw new Error(`unknown key ${JSON.stringify(name)}`);
    return join(this.#folder, `${name}.key`);
  }

  async #ask(prompt: string | null, signal: AbortSignal): Promise<void> {
    if (!this.#verifyUser) throw new KeyStoreError('unavailable');
    if (prompt === null) throw new KeyStoreError('cancelled');
    try {
      await this.#verifyUser(prompt, signal);
    } catch (error) {
      if (error instanceof KeyStoreError) throw error;
      throw new KeyStoreError('cancelled', 'the user was not verified', { cause: error });
    }
  }

  /** Whether keys can be encrypted now. */
  #check(): void {
    const backend = this.#storage.getSelectedStorageBackend?.();
    if (backend === 'basic_text') {
      throw new Error('safeStorage has no keychain here and would keep keys in plain text');
    }
    if (backend === 'unknown' || !this.#storage.isEncryptionAvailable()) {
      throw new KeyStoreError('locked');
    }
  }

  /** Write from the start, durably, and close. */
  async #write(file: FileHandle, bytes: Uint8Array): Promise<void> {
    try {
      await file.write(bytes, 0, bytes.length, 0);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Open a key file, if there is one; refuse one that others can read, write or replace. */
  async #open(name: KeyName, flags: number): Promise<FileHandle | null> {
    let file;
    try {
      await this.#checkFolder();
      file = await open(this.#path(name), flags | (constants.O_NOFOLLOW ?? 0));
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return null;
      throw error;
    }
    const { mode, uid } = await file.stat();
    // Windows has no modes.
    if (!process.getuid || (uid === process.getuid() && (mode & 0o077) === 0)) return file;
    await file.close();
    throw new Error(`${this.#path(name)} must be a file of this user, with mode 0600`);
  }

  /** Whoever may write the folder can replace keys. */
  async #checkFolder(): Promise<void> {
    const { mode, uid } = await stat(this.#folder);
    if (!process.getuid || (uid === process.getuid() && (mode & 0o022) === 0)) return;
    throw new Error(`${this.#folder} must be writable by this user alone`);
  }

  /** Makes a rename durable; Windows has no such call and needs none. */
  async #sync(): Promise<void> {
    if (process.platform === 'win32') return;
    const folder = await open(this.#folder, 'r');
    await folder.sync().finally(() => folder.close());
  }
}
