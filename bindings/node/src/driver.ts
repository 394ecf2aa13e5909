/** The host's loop: sends the requests, answers for the key store, passes the news on. @module */

import { CLOSED, ClosedError, errorOf, HoldfastError } from './errors.js';
import type { News, Options } from './holdfast.js';
import { CANCELLED, fetchTransport, REFUSED } from './http.js';
import type { HttpResult, Transport } from './http.js';
import { answer } from './keystore.js';
import type { KeyAnswer, KeyQuestion, KeyStore } from './keystore.js';
import { NEWS, REQUESTS } from './native.js';
import type { Native, Outcome } from './native.js';
import type { OperationName } from './operations.js';
import type { Config, Decision, HttpRequest, NextRequest, OpenReply } from './types.js';

/** The most requests in flight at once. */
const CONNECTIONS = 8;
/** The calls after which nobody needs the key that a prompt on the screen would release. */
const ENDS_PROMPT: OperationName[] = ['session_unlock', 'session_lock', 'session_logout'];
/** What the prompt releases. */
const BIOMETRIC: KeyQuestion = { operation: 'load', name: 'biometric', protection: null, value: null };
/** The answer of a prompt that was taken back. */
const WITHDRAWN: KeyAnswer = { result: 'cancelled', value: null };

/** What a `Holdfast` owns. It does not know its owner, so that the owner can be collected. */
export class Driver {
  opened!: OpenReply;
  screen: Decision | null = null;
  closing: Promise<void> | null = null;

  readonly #native: Native;
  readonly #handle: unknown;
  readonly #transport: Transport;
  readonly #keyStore: KeyStore | undefined;
  readonly #report: (error: unknown) => void;
  readonly #abort = new AbortController();
  readonly #sending = new Set<Promise<void>>();

  /** The screen of the open, until another one or this one was given. */
  #first: Decision | null = null;
  /** What `settled` has passed over. */
  #kept: News[] = [];
  /** What the reader waits for, and the loop of the requests. */
  #reading: Promise<Outcome> | null = null;
  #following: Promise<void> | null = null;

  /** The prompt on the screen, the unlocks, one at a time, and what their prompt has released. */
  #prompt = new AbortController();
  #unlocks: Promise<unknown> = Promise.resolve();
  #released: KeyAnswer | null = null;

  private constructor(native: Native, options: Options) {
    this.#native = native;
    this.#transport = options.transport ?? fetchTransport();
    this.#keyStore = options.keyStore;
    this.#report = options.onError ?? ((error) => console.error('holdfast:', error));
    this.#handle = native.create(this.#keyStore !== undefined);
  }

  static async open(native: Native, config: Config, options: Options): Promise<Driver> {
    if (options.keyStore && config.keystore) {
      throw new TypeError(`a key store was passed, and keystore.kind is "${config.keystore.kind}"`);
    }
    const text = encode(config);
    const made = new Driver(native, options);
    if (made.#keyStore) made.#serve(made.#keyStore).catch(made.#report);
    made.opened = read(await native.open(made.#handle, text)) as OpenReply;
    made.screen = made.#first = made.opened.screen;
    made.#following = made.#follow();
    return made;
  }

  // ---- calls ----

  /** Make a call of the app. */
  async ask(name: OperationName, request?: object): Promise<unknown> {
    if (this.closing) throw errorOf(CLOSED, null);
    if (ENDS_PROMPT.includes(name)) this.#prompt.abort();
    if (this.#keyStore && name === 'session_unlock') return this.#unlock(this.#keyStore);
    return this.#call(name, request);
  }

  async #call(name: OperationName, request?: object): Promise<unknown> {
    const text = request === undefined ? null : encode(request);
    return read(await this.#native.call(this.#handle, name, text));
  }

  // ---- news ----

  async next(timeoutMs: number): Promise<News | null> {
    if (this.#reading) throw new Error('a reader waits for the next thing already: there can be one');
    const kept = this.#kept.shift();
    if (kept) return kept;
    this.#reading = this.#native.next(this.#handle, NEWS, this.#first ? 0 : timeoutMs);
    const outcome = await this.#reading;
    this.#reading = null;
    if (outcome.status === CLOSED) return null;
    let news: News;
    try {
      news = read(outcome) as News;
    } catch (error) {
      if (!this.#first || !(error instanceof HoldfastError && error.retryable)) throw error;
      // It does not hold up the first screen. If it lasts, the next call tells.
      news = { wake_in_ms: null };
    }
    if (this.#first && 'wake_in_ms' in news) news = { screen: this.#first };
    if ('screen' in news) {
      this.screen = news.screen;
      this.#first = null;
    }
    return news;
  }

  /** The same without a limit, past failures of the disk or the key store, which are reported. */
  async nextNews(): Promise<News | null> {
    for (;;) {
      try {
        return await this.next(-1);
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        this.#report(error);
      }
    }
  }

  /** The next screen but `wait`. */
  async settled(): Promise<Decision> {
    const others: News[] = [];
    try {
      for (let news; (news = await this.nextNews()); ) {
        if (!('screen' in news)) others.push(news);
        else if (news.screen.screen !== 'wait') return news.screen;
      }
    } finally {
      this.#kept.push(...others);
    }
    throw errorOf(CLOSED, null);
  }

  // ---- requests ----

  async #follow(): Promise<void> {
    for (;;) {
      const outcome = await this.#native.next(this.#handle, REQUESTS, -1);
      if (outcome.status === CLOSED) return;
      if (outcome.status !== 0 || outcome.reply === null) {
        this.#report(errorOf(outcome.status, outcome.reply)); // the library has waited before it failed
        continue;
      }
      const { request } = JSON.parse(outcome.reply) as NextRequest;
      const sending = this.#send(request).finally(() => this.#sending.delete(sending));
      this.#sending.add(sending);
      if (this.#sending.size >= CONNECTIONS) await Promise.race(this.#sending);
    }
  }

  /** Send a request; one whose answer cannot be passed on has failed. */
  async #send(request: HttpRequest): Promise<void> {
    const { id } = request;
    try {
      await this.#call('complete', { id, ...(await this.#answer(request)) });
    } catch (error) {
      if (error instanceof ClosedError) return; // the next open sends it again
      this.#report(error);
      await this.#call('complete', { id, ...REFUSED }).catch(this.#report);
    }
  }

  /** The answer of the transport; `cancelled` after close(), also if the transport goes on. */
  #answer(request: HttpRequest): Promise<HttpResult> {
    const { signal } = this.#abort;
    return new Promise((resolve) => {
      const cancel = () => resolve(CANCELLED);
      signal.addEventListener('abort', cancel);
      if (signal.aborted) return cancel();
      void (async () => this.#transport(request, signal))()
        .catch((error): HttpResult => {
          if (!signal.aborted) this.#report(error);
          return { error: 'offline' };
        })
        .then(resolve)
        .finally(() => signal.removeEventListener('abort', cancel));
    });
  }

  // ---- keys ----

  /** Answer for the key store, until the handle is closed. */
  async #serve(store: KeyStore): Promise<void> {
    for (let asked; (asked = await this.#native.keyNext(this.#handle)); ) {
      const isReleased = asked.unlocking && asked.name === 'biometric' && asked.operation === 'load';
      const key = isReleased ? this.#released : null;
      const { result, value } = key ?? (await answer(store, asked, null, this.#report, this.#abort.signal));
      if (!this.#native.keyComplete(this.#handle, asked.id, result, value)) continue;
      this.#report(new TypeError(`the key store gave for "${asked.name}" what is no key`));
      this.#native.keyComplete(this.#handle, asked.id, 'failed', null);
    }
  }

  /**
   * Ask the user for `biometric`, as no call waits for a person; then make the call, within which
   * the library asks for the key, and gets what the prompt has released or refused.
   */
  #unlock(store: KeyStore): Promise<unknown> {
    const { signal } = (this.#prompt = new AbortController());
    const text = this.opened.unlock_prompt;
    const unlock = this.#unlocks.then(async () => {
      const given = signal.aborted ? WITHDRAWN : await answer(store, BIOMETRIC, text, this.#report, signal);
      this.#released = signal.aborted ? WITHDRAWN : given;
      return this.#call('session_unlock').finally(() => (this.#released = null));
    });
    this.#unlocks = unlock.catch(() => {}); // its caller learns of the failure
    return unlock;
  }

  // ---- the end ----

  close(): Promise<void> {
    this.closing ??= this.#finish();
    return this.closing;
  }

  async #finish(): Promise<void> {
    this.#abort.abort();
    this.#prompt.abort();
    await Promise.all(this.#sending);
    await this.#native.close(this.#handle);
    // The library closes its files when its last call has returned.
    await Promise.all([this.#following, this.#reading, ...this.#sending]);
  }
}

/** The value of a reply, or its error. */
function read({ status, reply }: Outcome): unknown {
  if (status !== 0 || reply === null) throw errorOf(status, reply);
  return JSON.parse(reply) as unknown;
}

/** A request as JSON. JSON has no NaN: JSON.stringify would send null instead. */
function encode(request: object): string {
  return JSON.stringify(request, (key, value: unknown) => {
    if (typeof value !== 'number' || Number.isFinite(value)) return value;
    throw new TypeError(`"${key}" is ${value}, which is no number of JSON`);
  });
}
