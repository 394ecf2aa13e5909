/**
 * The part of this package that needs no Node: for a platform that brings its own `Native`.
 *
 * @module
 */

export { Holdfast } from './holdfast.js';
export type { News, Options } from './holdfast.js';
export * from './errors.js';
export { KeyStoreError, MemoryKeyStore } from './keystore.js';
export type { KeyName, KeyProtection, KeyResult, KeyStore } from './keystore.js';
export { failure, fetchTransport } from './http.js';
export type { FetchLike, HttpResult, ResponseLike, Transport } from './http.js';
export type { KeyAsked, Native, Outcome } from './native.js';
export * from './types.js';
