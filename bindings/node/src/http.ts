/** Sends the library's requests with `fetch`. @module */

import type { HttpAnswer, HttpFailure, HttpRequest, TransportError } from './types.js';

/** What became of a request: a response, or why there is none. */
export type HttpResult = Omit<HttpAnswer, 'id'> | Omit<HttpFailure, 'id'>;

/**
 * Sends one request once, and follows no redirect: requests carry credentials. It gives up after
 * `timeout_ms`, and when the signal says so. A failure is a result, not an exception.
 */
export type Transport = (request: HttpRequest, signal: AbortSignal) => Promise<HttpResult>;

/** The part of a response that is read. */
export interface ResponseLike {
  status: number;
  headers: { forEach(each: (value: string, name: string) => void): void };
  body: ReadableStream<Uint8Array> | null;
}

/** `fetch`, or Electron's `net.fetch`. */
export type FetchLike = (url: string, init: RequestInit) => Promise<ResponseLike>;

/** The most bytes of one response. */
const BODY_LIMIT = 8 << 20;

/** The result of a request whose response cannot be used. */
export const REFUSED: HttpResult = { error: 'refused' };
/** The result of a request that was given up. */
export const CANCELLED: HttpResult = { error: 'cancelled' };

/** The response is over the limit. */
class TooLong extends Error {}

/** A transport over `fetch`: no redirects, no cookies, no cache, within `timeout_ms` in all. */
export function fetchTransport(send: FetchLike = (url, init) => fetch(url, init)): Transport {
  return async (request, signal) => {
    if (signal.aborted) return CANCELLED;
    const control = new AbortController();
    let given: TransportError | null = null;
    const giveUp = (reason: TransportError) => {
      given ??= reason;
      control.abort();
    };
    const stop = () => giveUp('cancelled');
    signal.addEventListener('abort', stop, { once: true });
    const timer = setTimeout(() => giveUp('timeout'), request.timeout_ms);
    try {
      const response = await send(request.url, {
        method: request.method,
        headers: request.headers,
        body: request.body,
        redirect: 'manual',
        credentials: 'omit',
        cache: 'no-store',
        signal: control.signal,
      });
      const headers: Record<string, string> = {};
      response.headers.forEach((value, name) => {
        headers[name] = value;
      });
      const bytes = await all(response.body);
      // A response that hides its status, as a redirect does in a browser.
      if (response.status < 100 || response.status > 599) return REFUSED;
      return { status: response.status, headers, body: textOf(bytes) };
    } catch (error) {
      const why: TransportError = given ?? (error instanceof TooLong ? 'refused' : failure(error));
      control.abort();
      return { error: why };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
    }
  };
}

async function all(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = body?.getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    length += next.value.byteLength;
    if (length > BODY_LIMIT) throw new TooLong();
    parts.push(next.value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

/** The text, or null if it is not UTF-8 or holds a NUL. */
function textOf(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** The words for the codes of Node and Chromium. */
const WORDS: [RegExp, TransportError][] = [
  [/^(ENOTFOUND|EAI_(AGAIN|NODATA|NONAME)|ERR_NAME_NOT_RESOLVED)$/, 'dns'],
  [/^(ETIMEDOUT|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT|ERR_(CONNECTION_)?TIMED_OUT)$/, 'timeout'],
  [/^(ECONNREFUSED|ERR_CONNECTION_REFUSED)$/, 'refused'],
  [/^(ERR_TLS_|ERR_SSL_|ERR_CERT_|CERT_|EPROTO$|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/, 'tls'],
];

/** The library's word for an exception of `fetch`. */
export function failure(error: unknown): TransportError {
  for (let one = error, depth = 0; one && depth < 5; depth += 1) {
    const { code, cause, message, errors, socket } = one as {
      code?: unknown;
      cause?: unknown;
      message?: unknown;
      errors?: unknown;
      socket?: { bytesRead?: unknown };
    };
    // The peer ended a connection that had brought nothing: it speaks no HTTP, or no TLS.
    if (code === 'UND_ERR_SOCKET' && socket?.bytesRead === 0) return 'refused';
    if (/before secure TLS connection/.test(String(message))) return 'tls';
    // Electron names its errors in the message: net::ERR_CONNECTION_REFUSED.
    const codes = [code, /net::(ERR_\w+)/.exec(String(message))?.[1]].map(String);
    const known = WORDS.find(([pattern]) => codes.some((each) => pattern.test(each)));
    if (known) return known[1];
    // A host with several addresses fails with one error for each.
    one = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return 'offline';
}
