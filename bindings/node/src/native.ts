/**
 * What a platform has to bring: functions over the C library. The addon of this package brings them
 * for Node and Electron; a React Native module can bring the same.
 *
 * @module
 */

import type { KeyQuestion } from './keystore.js';

/** A call has ended: the status of holdfast.h, and the reply as JSON; null: out of memory. */
export interface Outcome {
  status: number;
  reply: string | null;
}

/** A request of the mailbox. */
export interface KeyAsked extends KeyQuestion {
  id: number;
  /** Whether session_unlock asks. */
  unlocking: boolean;
}

/** What `next` is asked for, as HOLDFAST_NEXT_*. */
export const NEWS = 1;
export const REQUESTS = 2;

/** The functions. None of them blocks the thread of JavaScript. */
export interface Native<Handle = unknown> {
  /** A handle to open; `keys`: its key store is a mailbox (holdfast_keys.h). */
  create(keys: boolean): Handle;
  /** holdfast_open(), once. */
  open(handle: Handle, config: string): Promise<Outcome>;
  /** holdfast_call(). A request of null is `{}`. Calls of one handle end in their order. */
  call(handle: Handle, operation: string, request: string | null): Promise<Outcome>;
  /** holdfast_next(), on a thread for each `what`. */
  next(handle: Handle, what: typeof NEWS | typeof REQUESTS, timeoutMs: number): Promise<Outcome>;
  /** The next request of the mailbox, once there is one; null: the handle is closed. */
  keyNext(handle: Handle): Promise<KeyAsked | null>;
  /** Answers it. Returns the field that is wrong, and the request waits for another answer; or null. */
  keyComplete(handle: Handle, id: number, result: string, value: string | null): string | null;
  /** holdfast_close(), after the calls that were made before. A closed handle may be closed again. */
  close(handle: Handle): Promise<unknown>;
}
