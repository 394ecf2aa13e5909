// fetchTransport: one request, once, without redirects, cookies or a cache.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createConnectionServer } from 'node:net';
import { test } from 'node:test';
import * as h from './support.mjs';

const NEVER = new AbortController().signal;
const send = (url, more = {}, signal = NEVER) =>
  h.fetchTransport()(
    {
      ...{ id: 1, purpose: 'pull', method: 'GET', url, headers: { apikey: 'k' }, body: null },
      ...{ timeout_ms: h.patienceMs(60), ...more },
    },
    signal,
  );

/** A server that answers each path with a function; its address and the requests it got. */
async function server(t, paths) {
  const got = [];
  const running = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      got.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() });
      paths[request.url](response, request);
    });
  }).listen(0, '127.0.0.1');
  await once(running, 'listening');
  t.after(() => {
    running.closeAllConnections();
    running.close();
  });
  return { url: `http://127.0.0.1:${running.address().port}`, got };
}

test('a response is passed on as it is', h.LIMIT, async (t) => {
  const { url, got } = await server(t, {
    '/x?y=%20': (response) => {
      response.writeHead(201, { 'Content-Type': 'application/json', 'X-Two': ['a', 'b'] });
      response.end('\ufeff[1, "ø"]');
    },
    '/latin': (response) => response.end(Buffer.from([0x66, 0xf8])),
    '/nul': (response) => response.end('a\0b'),
    '/long': (response) => response.end(Buffer.alloc((8 << 20) + 1, 'x')),
  });
  const posted = { method: 'POST', body: '{"ø":1}', headers: { Prefer: 'a=b' } };
  const { status, headers, body } = await send(`${url}/x?y=%20`, posted);
  assert.deepEqual([status, headers['x-two'], body], [201, 'a, b', '\ufeff[1, "ø"]']);
  assert.deepEqual([got[0].body, got[0].headers.prefer], ['{"ø":1}', 'a=b']);
  // A body that is no text is null, and one that is too long is refused.
  assert.equal((await send(`${url}/latin`)).body, null);
  assert.equal((await send(`${url}/nul`)).body, null);
  assert.deepEqual(await send(`${url}/long`), { error: 'refused' });
});

test('no redirect is followed, no cookie is kept, and nothing is cached', h.LIMIT, async (t) => {
  const { url, got } = await server(t, {
    '/moved': (response) => response.writeHead(302, { Location: '/elsewhere' }).end(),
    '/': (response) =>
      response.writeHead(200, { 'Set-Cookie': 'a=b', 'Cache-Control': 'max-age=100', ETag: '"1"' }).end('x'),
  });
  const moved = await send(`${url}/moved`);
  assert.deepEqual([moved.status, moved.headers.location], [302, '/elsewhere']);
  await send(url);
  await send(url);
  assert.equal(got.length, 3);
  const { cookie, 'if-none-match': cached } = got[2].headers;
  assert.deepEqual([cookie, cached], [undefined, undefined]);
});

test('a request ends in time, and when it is given up', h.LIMIT, async (t) => {
  const { url, got } = await server(t, {
    '/hangs': () => {},
    '/half': (response) => response.write('half'),
    '/breaks': (response, { socket }) => {
      response.writeHead(200, { 'Content-Length': '100' }).write('half');
      setImmediate(() => socket.destroy());
    },
  });
  // Long enough for the requests to arrive
  const late = { timeout_ms: h.patienceMs(0.5) };
  assert.deepEqual(await send(`${url}/hangs`, late), { error: 'timeout' });
  assert.deepEqual(await send(`${url}/half`, late), { error: 'timeout' });
  assert.deepEqual(await send(`${url}/breaks`), { error: 'offline' });
  const control = new AbortController();
  const sending = send(`${url}/hangs`, {}, control.signal);
  await h.until(() => got.length === 4);
  control.abort();
  assert.deepEqual(await sending, { error: 'cancelled' });
  assert.deepEqual(await send(`${url}/hangs`, {}, control.signal), { error: 'cancelled' });
  assert.equal(got.length, 4);
});

test('a port without a server, or with another one, has its word', h.LIMIT, async (t) => {
  const { url } = await server(t, {});
  const database = createConnectionServer((link) => link.once('data', () => link.end()));
  database.listen(0, '127.0.0.1');
  await once(database, 'listening');
  t.after(() => database.close());
  const silent = `127.0.0.1:${database.address().port}`;
  for (const [place, error] of [
    [`http://127.0.0.1:${process.env.HOLDFAST_REFUSED_PORT}`, 'refused'],
    [url.replace('http:', 'https:'), 'tls'],
    [`http://${silent}`, 'refused'],
    [`https://${silent}`, 'tls'],
  ]) {
    assert.deepEqual(await send(place), { error }, place);
  }
});

test('errors of Node and of Electron have the words of the library', () => {
  const table = {
    dns: ['ENOTFOUND', 'EAI_AGAIN', 'net::ERR_NAME_NOT_RESOLVED'],
    refused: ['ECONNREFUSED', 'net::ERR_CONNECTION_REFUSED'],
    timeout: ['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT', 'net::ERR_TIMED_OUT'],
    tls: [
      ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
      ...['ERR_TLS_CERT_ALTNAME_INVALID', 'EPROTO', 'net::ERR_CERT_AUTHORITY_INVALID'],
    ],
    offline: ['ECONNRESET', 'UND_ERR_SOCKET', 'other'],
  };
  const failed = (cause) => Object.assign(new TypeError('fetch failed'), { cause });
  for (const [word, codes] of Object.entries(table)) {
    for (const code of codes) {
      assert.equal(h.failure(code.startsWith('net') ? new Error(code) : failed({ code })), word, code);
    }
  }
  for (const other of [null, undefined, 'text']) assert.equal(h.failure(other), 'offline');
  // A kept connection, which had brought a response before
  assert.equal(h.failure(failed({ code: 'UND_ERR_SOCKET', socket: { bytesRead: 1 } })), 'offline');
  assert.equal(h.failure(failed(new AggregateError([{ code: 'ECONNREFUSED' }]))), 'refused');
});
