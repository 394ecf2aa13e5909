/** One class for each status of holdfast.h. @module */

import type { ErrorCode } from './types.js';

/** What an error reply says. */
export interface Fault {
  code: ErrorCode;
  message: string;
  field: string | null;
  retryable: boolean;
  detail: Record<string, unknown>;
}

/** An operation failed. */
export class HoldfastError extends Error {
  /** The status of holdfast.h: the class of the error. */
  readonly status: number;
  /** `noun.reason`: stable, for programs. */
  readonly code: ErrorCode;
  /** The field of the request that is wrong, as a JSON Pointer; null: no single field. */
  readonly field: string | null;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Facts that belong to the code. */
  readonly detail: Record<string, unknown>;

  constructor(status: number, fault: Fault) {
    super(`${fault.code}${fault.field === null ? '' : ` at ${fault.field}`}: ${fault.message}`);
    this.name = new.target.name;
    this.status = status;
    this.code = fault.code;
    this.field = fault.field;
    this.retryable = fault.retryable;
    this.detail = fault.detail;
  }
}

/** The request is invalid; `field` says where. */
export class InvalidError extends HoldfastError {}
/** Not allowed in the present state: locked, signed out, no organisation, item in flight. */
export class StateError extends HoldfastError {}
/** The item, contact, organisation or sign-in does not exist. */
export class NotFoundError extends HoldfastError {}
/** The id exists with other content, or a confirmation is wrong. */
export class ConflictError extends HoldfastError {}
/** The key store gave no key; nothing was changed. */
export class KeyStoreFailedError extends HoldfastError {}
/** A file could not be read or written; nothing was changed. */
export class StorageError extends HoldfastError {}
/** The disk is full, or the queue has reached its limit. */
export class FullError extends HoldfastError {}
/** Another process holds the files. */
export class BusyError extends HoldfastError {}
/** The handle is closed. */
export class ClosedError extends HoldfastError {}
/** The handle belongs to the parent process. */
export class ForkedError extends HoldfastError {}
/** Out of memory. */
export class NoMemoryError extends HoldfastError {}
/** A defect of the library; please report `code`. */
export class InternalError extends HoldfastError {}

/** By status. */
const KINDS = [
  ...[InternalError, InvalidError, StateError, NotFoundError, ConflictError, KeyStoreFailedError],
  ...[StorageError, FullError, BusyError, ClosedError, ForkedError, NoMemoryError, InternalError],
];

/** The status of a closed handle. */
export const CLOSED = 9;

/** The error of a status and its reply; without memory there is none. */
export function errorOf(status: number, reply: string | null): HoldfastError {
  const kind = KINDS[status] ?? InternalError;
  if (reply !== null) return new kind(status, (JSON.parse(reply) as { error: Fault }).error);
  const [code, message]: [ErrorCode, string] =
    status === CLOSED ? ['handle.closed', 'the handle is closed'] : ['memory.exhausted', 'out of memory'];
  return new kind(status, { code, message, field: null, retryable: status !== CLOSED, detail: {} });
}
