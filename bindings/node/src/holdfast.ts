/** `Holdfast`: an open data folder, with every operation as a promise. @module */

import { Driver } from './driver.js';
import type { KeyStore } from './keystore.js';
import type { Transport } from './http.js';
import type { Native } from './native.js';
import { Operations } from './operations.js';
import type { OperationName, Replies, Requests } from './operations.js';
import type { Config, Decision, Event, OpenReply } from './types.js';

export interface Options {
  /**
   * The platform's keychain. Without one, the configuration names the key store `file`.
   */
  keyStore?: KeyStore | undefined;
  /** How requests are sent. Default: `fetchTransport()`. */
  transport?: Transport | undefined;
  /** The most requests in flight at once. Default: 8. */
  connections?: number | undefined;
  /**
   * Learns of failures that no call reports: of the key store, of the transport, of polling. They
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
 * Keep a reference to it, and call `close()` at the end. One that is collected closes itself. An
 * open one keeps the process running.
 */
export class Holdfast extends Operations {
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

  /** Whether `close` was called. Operations then reject with a `ClosedError`. */
  get closed(): boolean {
    return this.#driver.closing !== null;
  }

  /**
   * Make a call by the name of its operation. `session_unlock` with the outcome `success` asks the
   * key store for `biometric` first, with a prompt; what it refuses is the outcome.
   */
  override call(name: OperationName, request?: object): Promise<unknown> {
    return this.#driver.ask(name, request);
  }

  /**
   * Make a call at once: for a script, a worker thread, or a quick question such as
   * `callSync('route_check', { route })`. It blocks the loop, for up to 5 s while another process
   * holds the files. With a key store in JavaScript it throws `handle.busy`: it would block that, too.
   */
  callSync<Name extends OperationName>(
    name: Name,
    ...[request]: {} extends Requests[Name] ? [Requests[Name]?] : [Requests[Name]]
  ): Replies[Name] {
    return this.#driver.callSync(name, request) as Replies[Name];
  }

  /**
   * The events, for one reader at a time; ends when the handle is closed. A decision that a reply
   * has superseded is left out. Asking for the next event acknowledges the last one; a durable
   * event that was not acknowledged comes again after a restart. A slow reader slows nothing else.
   *
   * Rejects with the error that stopped the polling, if any.
   */
  async *events(): AsyncGenerator<Event, void, void> {
    const driver = this.#driver;
    driver.beginReading();
    try {
      for (let event = await driver.next(); event; event = await driver.next()) {
        if (!driver.superseded(event)) yield event;
        driver.acknowledge(event);
      }
    } finally {
      driver.endReading();
    }
    if (driver.failed) throw driver.failed;
  }

  /**
   * The decision that follows, while the given one is `wait`; the library sends it in bounded time.
   * It takes no event from `events()`.
   */
  async settled(decision: Decision): Promise<Decision> {
    let shown = decision;
    while (shown.screen === 'wait') shown = await this.#driver.decisionAfter(shown.number);
    return shown;
  }

  /**
   * Cancel the requests in flight, acknowledge the last events, and close; may be called twice. The
   * next open sends cancelled requests again.
   */
  async close(): Promise<void> {
    forgotten.unregister(this);
    await this.#driver.close();
  }
}
