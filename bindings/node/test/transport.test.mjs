// fetchTransport: one request, once, without redirects, cookies or a cache.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createConnectionServer } from 'node:net';
import { test } from 'node:test';
import * as h from './support.mjs';

const NEVER = new AbortController().signal;

const asked = (url, more = {}) => ({
  id: 1,
  purpose: 'pull',
  method: 'GET',
  url,
  headers: { apikey: 'k' },
  body: null,
  timeout_ms: h.patienceMs(60),
  ...more,
});

/** A server that answers with the function; its address and the requests it got. */
async function server(t, answer) {
  const got = [];
  const running = createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      got.push({ url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() });
      answer(request, response);
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
  const { url, got } = await server(t, (_, response) => {
    response.writeHead(201, { 'Content-Type': 'application/json', 'X-Two': ['a', 'b'] });
    response.end('\ufeff[1, "ø"]');
  });
  const send = h.fetchTransport();
  const request = asked(`${url}/x?y=%20`, { method: 'POST', body: '{"ø":1}', headers: { Prefer: 'a=b' } });
  const answer = await send(request, NEVER);
  assert.equal(answer.status, 201);
  assert.equal(answer.body, '\ufeff[1, "ø"]');
  assert.equal(answer.headers['x-two'], 'a, b');
  assert.deepEqual([got[0].url, got[0].body, got[0].headers.prefer], ['/x?y=%20', '{"ø":1}', 'a=b']);
});

test('a redirect is an answer, and is not followed', h.LIMIT, async (t) => {
  const { url, got } = await server(t, (_, response) => {
    response.writeHead(302, { Location: '/elsewhere' });
    response.end();
  });
  const answer = await h.fetchTransport()(asked(url), NEVER);
  assert.deepEqual([answer.status, answer.headers.location], [302, '/elsewhere']);
  assert.equal(got.length, 1);
});

test('no cookie is kept, and nothing is cached', h.LIMIT, async (t) => {
  const { url, got } = await server(t, (_, response) => {
    response.writeHead(200, { 'Set-Cookie': 'a=b', 'Cache-Control': 'max-age=100', ETag: '"1"' });
    response.end('x');
  });
  const send = h.fetchTransport();
  await send(asked(url), NEVER);
  await send(asked(url), NEVER);
  assert.equal(got.length, 2);
  assert.equal(got[1].headers.cookie, undefined);
  assert.equal(got[1].headers['if-none-match'], undefined);
});

test('a server that does not answer in time is a timeout', h.LIMIT, async (t) => {
  // Given limits that are long enough for the requests to arrive, and a server that ends no response
  const { url, got } = await server(t, (request, response) => {
    if (request.url === '/body') response.write('half');
  });
  const send = h.fetchTransport();
  const late = { timeout_ms: h.patienceMs(0.5) };
  assert.deepEqual(await send(asked(url, late), NEVER), { error: 'timeout' });
  assert.deepEqual(await send(asked(`${url}/body`, late), NEVER), { error: 'timeout' });
  assert.equal(got.length, 2);
});

test('an abort is `cancelled`, before and during a request', h.LIMIT, async (t) => {
  const { url, got } = await server(t, () => {});
  const control = new AbortController();
  const sending = h.fetchTransport()(asked(url), control.signal);
  await h.until(() => got.length > 0);
  control.abort();
  assert.deepEqual(await sending, { error: 'cancelled' });
  assert.deepEqual(await h.fetchTransport()(asked(url), control.signal), { error: 'cancelled' });
  assert.equal(got.length, 1);
});

test('a body that is no text is null, and one that is too long is refused', h.LIMIT, async (t) => {
  const { url } = await server(t, (request, response) => {
    if (request.url === '/latin') response.end(Buffer.from([0x66, 0xf8]));
    else if (request.url === '/nul') response.end('a\0b');
    else response.end(Buffer.alloc(5000, 'x'));
  });
  const send = h.fetchTransport({ bodyLimit: 4096 });
  assert.equal((await send(asked(`${url}/latin`), NEVER)).body, null);
  assert.equal((await send(asked(`${url}/nul`), NEVER)).body, null);
  assert.deepEqual(await send(asked(`${url}/long`), NEVER), { error: 'refused' });
});

test('a connection that breaks within a response is offline', h.LIMIT, async (t) => {
  const { url } = await server(t, (request, response) => {
    response.writeHead(200, { 'Content-Length': '100' });
    response.write('half');
    setImmediate(() => request.socket.destroy());
  });
  assert.deepEqual(await h.fetchTransport()(asked(url), NEVER), { error: 'offline' });
});

test('a port that speaks no HTTP is `refused`, and with https `tls`', h.LIMIT, async (t) => {
  const database = createConnectionServer((link) => link.once('data', () => link.end()));
  database.listen(0, '127.0.0.1');
  await once(database, 'listening');
  t.after(() => database.close());
  const at = `127.0.0.1:${database.address().port}`;
  const send = h.fetchTransport();
  assert.deepEqual(await send(asked(`http://${at}`), NEVER), { error: 'refused' });
  assert.deepEqual(await send(asked(`https://${at}`), NEVER), { error: 'tls' });
});

test('a port without a server is `refused`, and TLS to a server without is `tls`', h.LIMIT, async (t) => {
  const { url } = await server(t, (_, response) => response.end());
  const send = h.fetchTransport();
  const nobody = asked(`http://127.0.0.1:${process.env.HOLDFAST_REFUSED_PORT}`);
  assert.deepEqual(await send(nobody, NEVER), { error: 'refused' });
  assert.deepEqual(await send(asked(url.replace('http:', 'https:')), NEVER), { error: 'tls' });
});

test('errors of Node and of Electron have the words of the library', h.LIMIT, () => {
  const of = (code) => Object.assign(new TypeError('fetch failed'), { cause: { code } });
  const table = {
    dns: [of('ENOTFOUND'), of('EAI_AGAIN'), new Error('net::ERR_NAME_NOT_RESOLVED')],
    refused: [of('ECONNREFUSED'), new Error('net::ERR_CONNECTION_REFUSED')],
    timeout: [of('UND_ERR_CONNECT_TIMEOUT'), of('ETIMEDOUT'), new Error('net::ERR_TIMED_OUT')],
    tls: [
      of('DEPTH_ZERO_SELF_SIGNED_CERT'),
      of('CERT_HAS_EXPIRED'),
      of('UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
      of('ERR_TLS_CERT_ALTNAME_INVALID'),
      of('EPROTO'),
      new Error('net::ERR_CERT_AUTHORITY_INVALID'),
    ],
    offline: [
      of('ECONNRESET'),
      of('UND_ERR_SOCKET'),
      // A kept connection, which had brought a response before.
      { cause: { code: 'UND_ERR_SOCKET', socket: { bytesRead: 1 } } },
      new Error('other'),
      null,
      undefined,
      'text',
    ],
  };
  for (const [word, errors] of Object.entries(table)) {
    for (const error of errors) assert.equal(h.failure(error), word, String(error?.cause?.code));
  }
  const several = new AggregateError([of('ECONNREFUSED').cause]);
  assert.equal(h.failure(Object.assign(new TypeError('fetch failed'), { cause: several })), 'refused');
});

test('requests that wait for a connection are sent in turn', h.LIMIT, async (t) => {
  let open = 0;
  let most = 0;
  const real = h.fetchTransport();
  const transport = async (request, signal) => {
    open += 1;
    most = Math.max(most, open);
    const answer = await real(request, signal);
    open -= 1;
    return answer;
  };
  const { app, decision } = await h.signedIn(h.config(), { ...h.memory(), transport, connections: 1 });
  t.after(() => app.close());
  assert.equal(decision.screen, 'home');
  const { id } = await app.queueAdd(h.visit());
  await h.until(async () => (await h.stored(id)) === 1);
  assert.equal(most, 1);
});
