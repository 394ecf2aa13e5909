/** `Holdfast`: an open data folder, with every operation as a promise. @module */

import { Driver } from './driver.js';
import type { KeyStore } from './keystore.js';
import type { Transport } from './http.js';
import type { Native } from './native.js';
import { Operations } from './operations.js';
import type { OperationName } from './operations.js';
import type { Config, Decision, NextReply, NextRequest, OpenReply } from './types.js';

/** One thing for the app: its only field says what. */
export type News = Exclude<NextReply, NextRequest>;

export interface Options {
  /** The platform's keychain. Without one, the configuration names the key store `file`. */
  keyStore?: KeyStore | undefined;
  /** How requests are sent. Default: `fetchTransport()`. */
  transport?: Transport | undefined;
  /**
   * Learns of failures that no call reports: of the key store, of the transport, of the disk. They
   * hold no key and no token. Default: `console.error`.
   */
  onError?: ((error: unknown) => void) | undefined;
}

/** Closes what was collected without close(). */
const forgotten = new FinalizationRegistry<Driver>((driver) => {
  void driver.close();
});

/**
 * An open data folder. Every operation is a promise: the calls run one after another on another
 * thread, since they write to disk. The library's requests are sent while it is open.
 *
 * It is an async iterable of what the app gets: the first screen, and then whatever comes.
 *
 * Keep a reference to it, and call `close()` at the end. One that is collected closes itself. An
 * open one keeps the process running.
 */
export class Holdfast extends Operations implements AsyncIterable<News> {
  readonly #driver: Driver;

  /** Use `open`. */
  protected constructor(driver: Driver) {
    super();
    this.#driver = driver;
    forgotten.register(this, driver, this);
  }

  /** Open a data folder over the functions of a platform. Rejects with a `HoldfastError`. */
  static async openOn(native: Native, config: Config, options: Options = {}): Promise<Holdfast> {
    return new this(await Driver.open(native, config, options));
  }

  /** The reply of holdfast_open(): the version, and whether damaged files were set aside. */
  get opened(): OpenReply {
    return this.#driver.opened;
  }

  /** The newest screen: of the open, or of `next`. Null: none yet. */
  get screen(): Decision | null {
    return this.#driver.screen;
  }

  /** Whether `close` was called. Operations then reject with a `ClosedError`. */
  get closed(): boolean {
    return this.#driver.closing !== null;
  }

  protected override call(name: OperationName, request?: object): Promise<unknown> {
    return this.#driver.ask(name, request);
  }

  /**
   * The next thing; null when the handle is closed. Asking for it acknowledges a notice that was
   * given before. After `timeoutMs`, `wake_in_ms`: nothing now. One reader at a time.
   */
  next(timeoutMs = -1): Promise<News | null> {
    return this.#driver.next(timeoutMs);
  }

  /**
   * The next screen but `wait`, for instance the result of a sign-in. What else comes is kept for the
   * reader; a notice among it counts as acknowledged. Rejects with a `ClosedError` at the end.
   */
  settled(): Promise<Decision> {
    return this.#driver.settled();
  }

  /**
   * What comes, until the handle is closed; for one reader, in place of `next`. Leaving the loop
   * loses nothing: another one goes on. Failures of the disk go to `onError`, and it goes on.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<News, void, void> {
    for (let news; (news = await this.#driver.nextNews()); ) yield news;
  }

  /**
   * Cancel the requests in flight, and close; may be called twice. The next open sends cancelled
   * requests again.
   */
  async close(): Promise<void> {
    forgotten.unregister(this);
    await this.#driver.close();
  }
}
