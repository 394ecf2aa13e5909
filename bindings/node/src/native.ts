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

/** The functions. None of them but `callSync` blocks the thread of JavaScript. */
export interface Native<Handle = unknown> {
  /** holdfast_open(), with `keys` over a mailbox (mailbox.h). With the status 0 there is a handle. */
  open(config: string, keys: boolean): Promise<Outcome & { handle?: Handle }>;
  /** holdfast_call(). A request of null is `{}`. Calls of one handle end in their order. */
  call(handle: Handle, operation: string, request: string | null): Promise<Outcome>;
  /** The same at once, for a platform that can: it blocks the thread of JavaScript. */
  callSync?(handle: Handle, operation: string, request: string | null): Outcome;
  /** holdfast_wait() without a limit; one at a time for each handle. The promise has the status. */
  wait(handle: Handle): Promise<number>;
  /** The next request of the mailbox, once there is one; null: the handle is closed. */
  keyNext(handle: Handle): Promise<KeyAsked | null>;
  /** Answers it. Returns the field that is wrong, and the request waits for another answer; or null. */
  keyComplete(handle: Handle, id: number, result: string, value: string | null): string | null;
  /** holdfast_close(), after the calls that were made before. A closed handle may be closed again. */
  close(handle: Handle): Promise<unknown>;
}
