/**
 * The part of this package that needs no Node: for a platform that brings its own `Native`.
 *
 * @module
 */

export { Holdfast } from './holdfast.js';
export type { Options } from './holdfast.js';
export * from './errors.js';
export { KeyStoreError, MemoryKeyStore } from './keystore.js';
export type { KeyName, KeyProtection, KeyResult, KeyStore } from './keystore.js';
export { failure, fetchTransport } from './http.js';
export type { Answer, FetchLike, FetchOptions, ResponseLike, Transport } from './http.js';
export type { Native, Outcome } from './native.js';
export { OPERATIONS } from './operations.js';
export type { OperationName, Replies, Requests } from './operations.js';
export * from './types.js';
