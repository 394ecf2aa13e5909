// Closing, collecting and terminating: nothing crashes, nothing is left.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import * as h from './support.mjs';

const native = createRequire(import.meta.url)(
  `../../../build/node/holdfast/addon/${process.platform}-${process.arch}/holdfast.node`,
);

test('calls that were made before a close end, and later ones are refused', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(t);
  const before = Array.from({ length: 20 }, () => app.queueAdd(h.visit()));
  assert.equal(app.closed, false);
  const closing = [app.close(), app.close()];
  assert.equal(app.closed, true);
  assert.equal(new Set((await Promise.all(before)).map(({ id }) => id)).size, 20);
  await Promise.all(closing);
  await assert.rejects(app.queueAdd(h.visit()), h.ClosedError);
  await assert.rejects(app.sessionUnlock(), (error) => error.code === 'handle.closed');
  await app.close();
  assert.equal(h.liveCount(), 0);
});

test('a close cancels a request that hangs, and the next open sends it again', h.LIMIT, async (t) => {
  const [keys, data] = [h.memory(), h.config()];
  const { app } = await h.signedIn(t, keys, data);
  t.after(() => h.control('DELETE', '/faults'));
  const match = { path: '/rest/v1/activities' };
  await h.control('POST', '/faults', { match, action: 'hang', times: 1 });
  const { id } = await app.queueAdd(h.visit());
  await h.until(async () => (await h.control('GET', '/faults'))[0].hits > 0);
  await app.close();
  assert.equal(await h.stored(id), 0);
  await h.control('DELETE', '/faults');
  const again = await h.open(t, keys, data);
  await again.syncNow();
  await h.until(async () => (await h.stored(id)) === 1);
  await again.close();
  assert.equal(h.liveCount(), 0);
});

test('a transport that ignores its cancellation does not keep the folder open', h.LIMIT, async () => {
  let asked;
  const called = new Promise((resolve) => (asked = resolve));
  const transport = () => {
    asked();
    return new Promise(() => {});
  };
  const app = await h.Holdfast.open(h.config(), { ...h.memory(), transport });
  await app.signInComplete(h.SOLO);
  await called;
  await app.close();
  assert.equal(h.liveCount(), 0);
});

test('one that was collected closes itself, also with calls under way', h.LIMIT, async () => {
  const calls = await (async () => {
    const app = await h.Holdfast.open(h.config(), h.memory());
    await app.next();
    const handle = native.create(false);
    const file = h.config(undefined, { keystore: { kind: 'file' } });
    assert.equal((await native.open(handle, JSON.stringify(file))).status, 0);
    for (const what of [1, 2]) void native.next(handle, what, -1);
    return Array.from({ length: 50 }, () => native.call(handle, 'session_status', null));
  })();
  globalThis.gc();
  assert.ok((await Promise.all(calls)).every(({ status }) => status === 0 || status === 9));
  calls.length = 0;
  while (h.liveCount() > 0) {
    globalThis.gc();
    await setImmediate();
  }
});

test('the addon refuses what is no handle and no text', h.LIMIT, async () => {
  for (const wrong of [undefined, null, 7, 'x', {}, [], Object.create(null), () => {}, Symbol('x')]) {
    for (const name of ['open', 'call', 'next', 'keyNext', 'keyComplete', 'close']) {
      assert.throws(() => native[name](wrong, 'x', null), TypeError);
    }
  }
  const opening = native.create(true);
  assert.equal((await native.call(opening, 'session_status', null)).status, 9); // not open yet
  assert.equal((await native.open(opening, 'no JSON')).status, 1);
  assert.throws(() => native.open(opening, '{}'), /opened before/);
  assert.equal(await native.keyNext(opening), null);
  const handle = native.create(false);
  assert.throws(() => native.open(handle, 7), /configuration/);
  const file = h.config(undefined, { keystore: { kind: 'file' } });
  assert.equal((await native.open(handle, JSON.stringify(file))).status, 0);
  assert.throws(() => native.call(handle, 7, null), /operation/);
  assert.throws(() => native.call(handle, 'session_status', {}), /request/);
  assert.throws(() => native.next(handle, 'news', -1), /numbers/);
  assert.equal((await native.call(handle, 'no_such_operation', null)).status, 1);
  assert.equal((await native.next(handle, 7, 0)).status, 1);
  const waiting = native.next(handle, 2, -1);
  assert.equal(await native.keyNext(handle), null);
  await native.close(handle);
  assert.equal((await waiting).status, 9);
  assert.equal((await native.next(handle, 1, -1)).status, 9);
  assert.equal(await native.keyNext(handle), null);
  await native.close(handle);
  assert.equal((await native.call(handle, 'session_status', null)).status, 9);
  assert.equal(h.liveCount(), 0);
});

// ---- other threads, and the end of the process ----

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url));

test('worker threads each have handles of their own', h.LIMIT, async () => {
  const workers = [1, 2, 3, 4, 5, 6].map(
    () => new Worker(WORKER, { workerData: { config: h.config(), task: 'work' } }),
  );
  const exits = workers.map((worker) => once(worker, 'exit'));
  const said = await Promise.all(workers.map((worker) => once(worker, 'message')));
  assert.deepEqual(said.flat(), Array(6).fill({ screen: 'home', stored: 'stored' }));
  assert.deepEqual((await Promise.all(exits)).flat(), Array(6).fill(0));
  assert.equal(h.liveCount(), 0);
});

for (const task of ['idle', 'calls', 'opening', 'left']) {
  test(`a worker that is terminated leaves nothing: ${task}`, h.LIMIT, async () => {
    for (let round = 0; round < 10; round += 1) {
      const worker = new Worker(WORKER, { workerData: { config: h.config(), task } });
      const exit = once(worker, 'exit');
      await once(worker, 'message');
      if (task !== 'left') void worker.terminate();
      await exit;
    }
    await h.until(() => h.liveCount() === 0);
  });
}

test('a process ends as it wants to, and by itself once the handle is closed', h.LIMIT, () => {
  for (const [script, expected, told] of [
    ['process.exit(3);', 3, /^$/],
    ['await calls[0]; process.exit(4);', 4, /^$/],
    ["setTimeout(() => { throw new Error('own') });", 1, /own/],
    ['await app.close(); await app.close();', 0, /^$/],
  ]) {
    const source = `import * as h from ${JSON.stringify(String(new URL('support.mjs', import.meta.url)))};
      const app = await h.Holdfast.open(h.config(), h.memory());
      const calls = Array.from({ length: 100 }, () => app.sessionStatus());
      calls.forEach((call) => call.catch(() => {}));
      ${script}`;
    const given = ['--input-type=module', '--eval', source];
    const { status, signal, stderr } = spawnSync(process.execPath, given, { encoding: 'utf8' });
    assert.deepEqual([status, signal], [expected, null], stderr);
    assert.match(stderr, told);
  }
});

// ---- leaks ----

test('100,000 calls and 1,000 handles leave nothing behind', { timeout: 2 * h.LIMIT.timeout }, async () => {
  const data = h.config(undefined, { keystore: { kind: 'file' } });
  const app = await h.Holdfast.open(data);
  const route = `/${'x'.repeat(2000)}`; // 200 MB, if requests or replies stayed
  const used = async (calls, handles) => {
    for (let done = 0; done < calls; done += 100) {
      await Promise.all(Array.from({ length: 100 }, () => app.routeCheck({ route })));
    }
    for (let done = 0; done < handles; done += 10) {
      const opened = await Promise.all(Array.from({ length: 10 }, () => h.Holdfast.open(data)));
      await Promise.all(opened.map((each) => each.close()));
    }
    globalThis.gc();
    await setImmediate();
    return process.memoryUsage();
  };
  const number = (what) => readdirSync(`/proc/self/${what}`).length;
  const before = await used(10_000, 50);
  const [threads, descriptors] = [number('task'), number('fd')];
  const after = await used(100_000, 1000);
  for (const [what, most] of [['heapUsed', 4], ['external', 4], ['rss', 64]]) {
    const grown = (after[what] - before[what]) / 2 ** 20;
    assert.ok(grown < most, `${what} has grown by ${grown} MiB`);
  }
  // A thread ends on the loop, a little later than its handle.
  await h.until(() => number('task') <= threads && number('fd') <= descriptors);
  await app.close();
  assert.equal(h.liveCount(), 0);
});
