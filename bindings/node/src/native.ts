/**
 * What a platform has to bring: four functions over the C library. The addon of this package brings
 * them for Node and Electron; a React Native module can bring the same.
 *
 * @module
 */

/** A call has ended: the status of holdfast.h, and the reply as JSON; null: out of memory. */
export interface Outcome {
  status: number;
  reply: string | null;
}

/** The functions. None of them but `callSync` blocks the thread of JavaScript. */
export interface Native<Handle = unknown> {
  /** holdfast_open() without a key store. With the status 0 there is a handle. */
  open(config: string): Promise<Outcome & { handle?: Handle }>;
  /** holdfast_call(). A request of null is `{}`. Calls of one handle end in their order. */
  call(handle: Handle, operation: string, request: string | null): Promise<Outcome>;
  /** The same at once, for a platform that can: it blocks the thread of JavaScript. */
  callSync?(handle: Handle, operation: string, request: string | null): Outcome;
  /** holdfast_wait() without a limit; one at a time for each handle. The promise has the status. */
  wait(handle: Handle): Promise<number>;
  /** holdfast_close(), after the calls that were made before. A closed handle may be closed again. */
  close(handle: Handle): Promise<unknown>;
}
