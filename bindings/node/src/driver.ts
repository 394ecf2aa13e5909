/** The host's loop: polls, sends requests, asks the key store, keeps events. @module */

import { BusyError, ClosedError, CLOSED, errorOf, HoldfastError, InvalidError } from './errors.js';
import type { Fault } from './errors.js';
import type { Options } from './holdfast.js';
import { CANCELLED, fetchTransport, REFUSED } from './http.js';
import type { Answer, Transport } from './http.js';
import { answer } from './keystore.js';
import type { KeyAnswer, KeyQuestion, KeyResult, KeyStore } from './keystore.js';
import type { Native, Outcome } from './native.js';
import type { OperationName } from './operations.js';
import type {
  CompleteRequest,
  Config,
  Decision,
  Event,
  HttpRequest,
  OpenReply,
  PollReply,
  PollRequest,
  SessionUnlockRequest,
} from './types.js';

/** The pause before a call is repeated because another process holds the files. */
const AGAIN_MS = 250;
/** How long `close` waits for a transport that ignores that it was cancelled. */
const FAREWELL_MS = 5000;
/** The most events that wait for the reader before the library is asked for no more. */
const WAITING_EVENTS = 400;
/** The calls after which nobody needs the key that a prompt on the screen would release. */
const ENDS_PROMPT: OperationName[] = ['session_unlock', 'session_lock', 'session_logout'];
/** The answers of a key store that are no outcome of a prompt. */
const NO_OUTCOMES: KeyResult[] = ['ok', 'not_found', 'locked'];

/** What a `Holdfast` owns. It does not know its owner, so that the owner can be collected. */
export class Driver {
  closing: Promise<void> | null = null;
  failed: HoldfastError | null = null;

  readonly #native: Native;
  readonly #handle: unknown;
  readonly #transport: Transport;
  readonly #keyStore: KeyStore | undefined;
  readonly #report: (error: unknown) => void;
  readonly #abort = new AbortController();
  readonly #work: Promise<void>;

  /** The newest decision of a reply or an event, and of a reply alone. */
  #decision: Decision | null = null;
  #replied = 0;
  #deciding: { after: number; resolve: (decision: Decision) => void; reject: (error: unknown) => void }[] =
    [];

  /** The prompt on the screen, and its end. */
  #prompt = new AbortController();
  #prompted: Promise<unknown> = Promise.resolve();
  /** The key that the user has released for the session_unlock that follows. */
  #released: KeyAnswer | null = null;

  #events: Event[] = [];
  #reading = false;
  #ended = false;
  #reader: ((event: Event | null) => void) | null = null;
  #seen = 0;
  #acknowledged = 0;

  #woken = false;
  #resume: (() => void) | null = null;
  #waiting: Promise<void> | null = null;

  #free: number;
  #turns: (() => void)[] = [];
  readonly #sending = new Set<Promise<void>>();
  readonly #unanswered = new Map<number, Answer>();

  private constructor(native: Native, handle: unknown, readonly opened: OpenReply, options: Options) {
    this.#native = native;
    this.#handle = handle;
    this.#transport = options.transport ?? fetchTransport();
    this.#keyStore = options.keyStore;
    this.#report = options.onError ?? ((error) => console.error('holdfast:', error));
    this.#free = options.connections ?? 8;
    this.#work = this.#follow();
    if (this.#keyStore) this.#serve(this.#keyStore).catch(this.#report);
  }

  static async open(native: Native, config: Config, options: Options): Promise<Driver> {
    const { keyStore, connections } = options;
    if (keyStore && config.keystore) {
      throw new TypeError(`a key store was passed, and keystore.kind is "${config.keystore.kind}"`);
    }
    if (connections !== undefined && !(Number.isInteger(connections) && connections > 0)) {
      throw new TypeError('connections must be a whole number above 0');
    }
    const { status, reply, handle } = await native.open(encode(config), keyStore !== undefined);
    if (status !== 0 || reply === null) throw errorOf(status, reply);
    return new Driver(native, handle, JSON.parse(reply) as OpenReply, options);
  }

  // ---- calls ----

  async call(name: OperationName, request?: object): Promise<unknown> {
    const text = request === undefined ? null : encode(request);
    return this.#read(await this.#native.call(this.#handle, name, text));
  }

  callSync(name: OperationName, request?: object): unknown {
    if (!this.#native.callSync) throw new Error('this platform has no calls that block');
    if (this.#keyStore) {
      throw new BusyError(8, fault('handle.busy', 'the key store answers on this thread: use call()'));
    }
    const text = request === undefined ? null : encode(request);
    const value = this.#read(this.#native.callSync(this.#handle, name, text));
    if (name === 'poll') this.#begin(value as PollReply);
    return value;
  }

  /** The value of a reply, or its error. */
  #read({ status, reply }: Outcome): unknown {
    if (status !== 0 || reply === null) throw errorOf(status, reply);
    const value: unknown = JSON.parse(reply);
    this.#note(value);
    return value;
  }

  /** Make a call of the app. */
  async ask(name: OperationName, request?: object): Promise<unknown> {
    if (ENDS_PROMPT.includes(name)) this.#prompt.abort();
    const { outcome } = (request ?? {}) as Partial<SessionUnlockRequest>;
    if (this.#keyStore && name === 'session_unlock' && outcome === 'success') {
      return this.#unlock(this.#keyStore, request);
    }
    const reply = await this.call(name, request);
    // A poll of the app's own gives it the events; nobody else would send the requests.
    if (name === 'poll') this.#begin(reply as PollReply);
    return reply;
  }

  /** Remember a decision in a reply. */
  #note(value: unknown): void {
    const { decision } = value as { decision?: Decision };
    const found = decision ?? (value as Decision);
    if (typeof found.screen !== 'string') return;
    this.#replied = Math.max(this.#replied, found.number);
    this.#decided(found);
  }

  #decided(decision: Decision): void {
    if (decision.number <= (this.#decision?.number ?? -1)) return;
    this.#decision = decision;
    const waiting = this.#deciding;
    this.#deciding = waiting.filter(({ after }) => after >= decision.number);
    for (const { after, resolve } of waiting) if (after < decision.number) resolve(decision);
  }

  /** Whether the event is a decision that is older than one that a call has replied. */
  superseded(event: Event): boolean {
    return event.type === 'decision' && event.decision.number < this.#replied;
  }

  decisionAfter(number: number): Promise<Decision> {
    const newest = this.#decision;
    if (newest && newest.number > number) return Promise.resolve(newest);
    if (this.#ended) return Promise.reject(this.failed ?? errorOf(CLOSED, null));
    return new Promise((resolve, reject) => {
      this.#deciding.push({ after: number, resolve, reject });
      this.#wake();
    });
  }

  // ---- events ----

  beginReading(): void {
    if (this.#reading) throw new Error('events() has a reader already');
    this.#reading = true;
  }

  endReading(): void {
    this.#reading = false;
    this.#reader = null;
  }

  next(): Promise<Event | null> {
    const event = this.#events.shift();
    if (event || this.#ended) return Promise.resolve(event ?? null);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  acknowledge(event: Event): void {
    this.#seen = Math.max(this.#seen, event.seq);
    this.#wake(); // acknowledges, and takes the events that wait in the library
  }

  #give(event: Event): void {
    if (event.type === 'decision') this.#decided(event.decision);
    const reader = this.#reader;
    this.#reader = null;
    if (reader) reader(event);
    else this.#events.push(event);
  }

  #end(): void {
    this.#ended = true;
    this.#reader?.(null);
    this.#reader = null;
    const error = this.failed ?? errorOf(CLOSED, null);
    for (const { reject } of this.#deciding.splice(0)) reject(error);
  }

  // ---- the loop ----

  async #follow(): Promise<void> {
    try {
      while (!this.closing) {
        this.#woken = false;
        this.#take(await this.#patiently('poll', this.#pollRequest()));
        this.#watch();
        await this.#sleep();
      }
    } catch (error) {
      if (error instanceof ClosedError || this.closing) return;
      this.failed = error instanceof HoldfastError ? error : null;
      this.#report(error);
    } finally {
      if (!this.closing) this.#end();
    }
  }

  /** Each event once, and none while many wait for the reader and nobody waits for a decision. */
  #pollRequest(): PollRequest {
    const request: PollRequest = { only_new: true };
    if (this.#seen > 0) request.ack = this.#seen;
    if (this.#events.length >= WAITING_EVENTS && this.#deciding.length === 0) request.max_events = 0;
    this.#acknowledged = this.#seen;
    return request;
  }

  #take(polled: PollReply): void {
    for (const event of polled.events) this.#give(event);
    this.#begin(polled);
  }

  #begin(polled: PollReply): void {
    for (const request of polled.requests) this.#start(this.#send(request));
  }

  #start(task: Promise<void>): void {
    this.#sending.add(task);
    void task.finally(() => this.#sending.delete(task));
  }

  /** Let the library wake the loop; one wait at a time, which outlasts polls for other reasons. */
  #watch(): void {
    if (this.closing) return;
    this.#waiting ??= this.#native
      .wait(this.#handle)
      // A disk or key store failed: try again a little later.
      .then((status) => (status === 0 || status === CLOSED ? undefined : pause(1000)))
      .catch((error) => {
        this.#report(error);
        return pause(1000);
      })
      .then(() => {
        this.#waiting = null;
        this.#wake();
      });
  }

  #wake(): void {
    this.#woken = true;
    this.#resume?.();
    this.#resume = null;
  }

  async #sleep(): Promise<void> {
    if (this.#woken || this.closing) return;
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
  }

  /** Make a call, and repeat it while the library asks for that. */
  async #patiently(name: 'poll', request: PollRequest): Promise<PollReply>;
  async #patiently(name: 'complete', request: object): Promise<unknown>;
  async #patiently(name: OperationName, request: object): Promise<unknown> {
    for (;;) {
      try {
        return await this.call(name, request);
      } catch (error) {
        if (!(error instanceof HoldfastError && error.retryable) || this.closing) throw error;
      }
      await pause(AGAIN_MS);
    }
  }

  // ---- requests ----

  async #send(request: HttpRequest): Promise<void> {
    const { id } = request;
    this.#unanswered.set(id, CANCELLED);
    await this.#turn();
    try {
      const answer = await this.#answer(request);
      this.#unanswered.set(id, answer);
      await this.#complete(id, answer);
      this.#unanswered.delete(id);
    } catch (error) {
      // After close() the next open sends the request again.
      if (!(error instanceof ClosedError) && !this.closing) this.#report(error);
    } finally {
      const next = this.#turns.shift();
      if (next) next();
      else this.#free += 1;
    }
  }

  /** Wait for a connection: a free one, or that of a request that has ended. */
  async #turn(): Promise<void> {
    if (this.closing) return;
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#turns.push(resolve));
  }

  async #answer(request: HttpRequest): Promise<Answer> {
    if (this.closing) return CANCELLED;
    try {
      return await this.#transport(request, this.#abort.signal);
    } catch (error) {
      this.#report(error);
      return { error: 'offline' };
    }
  }

  /** Complete a request; one whose answer cannot be passed on has failed. */
  async #complete(id: number, answer: Answer): Promise<void> {
    try {
      await this.#patiently('complete', { id, ...answer } as CompleteRequest);
    } catch (error) {
      if (!(error instanceof InvalidError)) throw error;
      this.#report(error);
      await this.#patiently('complete', { id, ...REFUSED });
    }
  }

  // ---- keys ----

  /** Answer for the key store, until the handle is closed. */
  async #serve(store: KeyStore): Promise<void> {
    for (let asked; (asked = await this.#native.keyNext(this.#handle)); ) {
      const isReleased = asked.unlocking && asked.name === 'biometric' && asked.operation === 'load';
      const key = isReleased ? this.#released : null;
      const { result, value } = key ?? (await answer(store, asked, null, this.#report, this.#abort.signal));
      if (!this.#native.keyComplete(this.#handle, asked.id, result, value)) continue;
      this.#report(new InvalidError(1, fault('request.invalid_value', 'this is no key', '/value')));
      this.#native.keyComplete(this.#handle, asked.id, 'failed', null);
    }
  }

  /**
   * Ask the user for `biometric` before the call that needs it, as no call waits for a person. The
   * library is told what the prompt refused, and gets every other answer when it asks for the key.
   */
  async #unlock(store: KeyStore, request: object | undefined): Promise<unknown> {
    const text = this.opened.unlock_prompt;
    const { signal } = (this.#prompt = new AbortController());
    const ask = () => (signal.aborted ? null : answer(store, BIOMETRIC, text, this.#report, signal));
    const asking = this.#prompted.then(ask); // one prompt at a time
    this.#prompted = asking;
    const found = await asking;
    const key = found && !signal.aborted ? found : WITHDRAWN;
    const outcome = NO_OUTCOMES.includes(key.result) ? 'success' : key.result;
    this.#released = key;
    try {
      return await this.call('session_unlock', { ...request, outcome });
    } finally {
      if (this.#released === key) this.#released = null;
    }
  }

  // ---- the end ----

  close(): Promise<void> {
    this.closing ??= Promise.resolve().then(() => this.#finish());
    return this.closing;
  }

  async #finish(): Promise<void> {
    this.#abort.abort();
    this.#prompt.abort();
    for (const turn of this.#turns.splice(0)) turn();
    this.#wake();
    try {
      await this.#work;
      await Promise.race([Promise.allSettled(this.#sending), farewell()]);
      if (!this.failed) await this.#lastPoll();
      for (const [id, answer] of this.#unanswered) {
        await this.call('complete', { id, ...answer });
      }
    } catch (error) {
      // Files that another process holds, a disk that failed: the next open takes care of it.
      if (!(error instanceof HoldfastError)) this.#report(error);
    } finally {
      await this.#native.close(this.#handle);
      // The library cleans up when its last call has returned.
      await this.#waiting;
      this.#end();
    }
  }

  /** Deletes the last events that were acknowledged. */
  async #lastPoll(): Promise<void> {
    if (this.#seen <= this.#acknowledged) return;
    const polled = await this.call('poll', { ack: this.#seen, max_events: 0 });
    for (const { id } of (polled as PollReply).requests) this.#unanswered.set(id, CANCELLED);
  }
}

/** What the prompt releases. */
const BIOMETRIC: KeyQuestion = { operation: 'load', name: 'biometric', protection: null, value: null };

/** The answer of a prompt that was taken back. */
const WITHDRAWN: KeyAnswer = { result: 'cancelled', value: null };

/** An error of this module, as the library would say it. */
function fault(code: string, message: string, field: string | null = null): Fault {
  return { code, message, field, retryable: false, detail: {} };
}

/** A request as JSON. JSON has no NaN: JSON.stringify would send null instead. */
function encode(request: object): string {
  const text = JSON.stringify(request);
  if (text.includes('null')) refuseNaN(request, '');
  return text;
}

function refuseNaN(value: unknown, pointer: string): void {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new InvalidError(1, fault('request.invalid_value', `${value} is no number of JSON`, pointer));
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    refuseNaN(inner, `${pointer}/${key.replace(/~/g, '~0').replace(/\//g, '~1')}`);
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** The pause of a transport that does not listen; it keeps no process running. */
function farewell(): Promise<void> {
  return new Promise((resolve) => {
    const timer: unknown = setTimeout(resolve, FAREWELL_MS);
    (timer as { unref?: () => void }).unref?.();
  });
}
