// Errors: what they say, and that a failure of the host's parts is told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as h from './support.mjs';

test('an error has the class of its status, its code and its field', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(h.config(), h.memory());
  t.after(() => app.close());
  await assert.rejects(app.queueAdd({ kind: 'activity', payload: { minuts: 5 } }), (error) => {
    assert.ok(error instanceof h.InvalidError);
    assert.ok(error instanceof h.HoldfastError);
    assert.equal(error.name, 'InvalidError');
    assert.equal(error.status, 1);
    assert.equal(error.code, 'queue.unknown_column');
    assert.equal(error.field, '/payload/minuts');
    assert.equal(error.retryable, false);
    assert.match(error.message, /^queue\.unknown_column at \/payload\/minuts: .*minutes/);
    return true;
  });
  const id = '01976b36-5e10-7f3a-9c44-2f0a6d1b8e03';
  await assert.rejects(app.queueGet({ id }), h.NotFoundError);
  const other = { ...h.visit(1), id: (await app.queueAdd(h.visit(2))).id };
  await assert.rejects(app.queueAdd(other), h.ConflictError);
});

test('an operation before the sign-in is an error of the state', h.LIMIT, async (t) => {
  const app = await h.Holdfast.open(h.config(), h.memory());
  t.after(() => app.close());
  await app.settled(await app.sessionResume());
  await assert.rejects(app.queueAdd(h.visit()), h.StateError);
});

test('a configuration that is wrong names the field, and leaves nothing open', h.LIMIT, async () => {
  const wrong = h.config(undefined, { policy: { biometrics: 'off' } });
  await assert.rejects(h.Holdfast.open(wrong, h.memory()), (error) => {
    assert.deepEqual([error.code, error.field], ['request.unknown_field', '/policy/biometrics']);
    return true;
  });
  assert.equal(h.liveCount(), 0);
});

test('NaN is refused, where JSON.stringify would send null', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(h.config(), h.memory());
  t.after(() => app.close());
  await assert.rejects(app.queueAdd(h.visit(Number.NaN)), (error) => {
    assert.ok(error instanceof h.InvalidError);
    assert.equal(error.field, '/payload/minutes');
    return true;
  });
  assert.equal((await app.queueList()).items.length, 0);
});

test('options that contradict each other are refused', h.LIMIT, async () => {
  const file = h.config(undefined, { keystore: { kind: 'file' } });
  await assert.rejects(h.Holdfast.open(file, h.memory()), /keystore\.kind is "file"/);
  await assert.rejects(h.Holdfast.open(file, { connections: 0 }), /connections must be/);
});

test('text of every kind arrives unchanged', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(h.config(), h.memory());
  t.after(() => app.close());
  const type = 'Besøk på Ås 🙂 "quoted" \\ \u2028';
  const { id } = await app.queueAdd({ ...h.visit(), payload: { type, minutes: 5 } });
  const { item } = await app.queueGet({ id });
  assert.equal(item?.payload.type ?? type, type);
});

test('events have one reader at a time', h.LIMIT, async (t) => {
  const app = await h.Holdfast.open(h.config(), h.memory());
  t.after(() => app.close());
  const first = app.events();
  const waiting = first.next();
  await assert.rejects(app.events().next(), /has a reader already/);
  await app.close();
  await waiting;
  // The iteration ends with the handle, and so does a later one.
  while (!(await first.next()).done);
  assert.equal((await app.events().next()).done, true);
});

test('a call that blocks gives the same replies and errors', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(h.config(undefined, { keystore: { kind: 'file' } }));
  t.after(() => app.close());
  assert.deepEqual(app.callSync('route_check', { route: '/mentor' }), { allow: true });
  assert.equal(app.callSync('session_status').state, 'active');
  const { id } = app.callSync('queue_add', h.visit());
  assert.equal(typeof (await app.queueGet({ id })).state, 'string');
  assert.throws(() => app.callSync('queue_add', { kind: 'x', payload: {} }), h.InvalidError);
  assert.throws(() => app.callSync('queue_add', h.visit(Infinity)), h.InvalidError);
  app.callSync('poll');
  await h.until(async () => (await h.stored(id)) === 1);
  await app.close();
  assert.throws(() => app.callSync('session_status'), h.ClosedError);
});

// ---- the key store ----

test('a key store that is locked leads to `wait`, and is asked again', h.LIMIT, async (t) => {
  const keyStore = new h.MemoryKeyStore();
  const data = h.config();
  const before = await h.signedIn(data, { keyStore });
  await before.app.close();
  let locked = true;
  const real = keyStore.load.bind(keyStore);
  keyStore.load = (name) => {
    if (locked) throw new h.KeyStoreError('locked');
    return real(name);
  };
  const app = await h.Holdfast.open(data, { keyStore });
  t.after(() => app.close());
  let shown = await app.sessionResume();
  const events = app.events();
  while (shown.reason !== 'keystore_locked') {
    const { value } = await events.next();
    if (value.type === 'decision') shown = value.decision;
  }
  assert.equal(shown.screen, 'wait');
  locked = false;
  assert.equal((await app.settled(await app.sessionResume())).screen, 'home');
});

test('an exception of a key store is reported, and counts as `failed`', h.LIMIT, async (t) => {
  const keyStore = new h.MemoryKeyStore();
  const real = keyStore.save.bind(keyStore);
  keyStore.save = async (name, key) => {
    if (name === 'session') throw new Error('no disk');
    real(name, key);
  };
  const reported = [];
  const app = await h.Holdfast.open(h.config(), { keyStore, onError: (e) => reported.push(e.message) });
  t.after(() => app.close());
  await app.settled(await app.sessionResume());
  const shown = await app.settled(await app.signInComplete(h.SOLO));
  assert.equal(shown.screen, 'sign_in');
  assert.ok(reported.includes('no disk'));
});

test('a key that is no key counts as `failed`', h.LIMIT, async (t) => {
  const keyStore = new h.MemoryKeyStore();
  const data = h.config();
  const before = await h.signedIn(data, { keyStore });
  await before.app.close();
  for (const name of keyStore.keys.keys()) keyStore.keys.set(name, 'not base64!');
  const reported = [];
  const app = await h.Holdfast.open(data, { keyStore, onError: (e) => reported.push(e) });
  t.after(() => app.close());
  let shown = await app.sessionResume();
  const events = app.events();
  while (shown.reason !== 'keystore_failed') {
    const { value } = await events.next();
    if (value.type === 'decision') shown = value.decision;
  }
  assert.ok(reported.some((error) => error instanceof h.InvalidError && error.field === '/value'));
  assert.equal(keyStore.keys.size > 0, true);
});

test('a transport that throws counts as offline, and is reported', h.LIMIT, async (t) => {
  const reported = [];
  const app = await h.Holdfast.open(h.config(), {
    ...h.memory(),
    transport: async () => {
      throw new Error('no network stack');
    },
    onError: (error) => reported.push(error.message),
  });
  t.after(() => app.close());
  await app.settled(await app.sessionResume());
  const shown = await app.settled(await app.signInComplete(h.SOLO));
  assert.equal(shown.reason, 'sign_in_offline');
  assert.ok(reported.includes('no network stack'));
});

test('an answer that the library refuses counts as a failure of the request', h.LIMIT, async (t) => {
  let asked = 0;
  const reported = [];
  const app = await h.Holdfast.open(h.config(), {
    ...h.memory(),
    transport: async () => {
      asked += 1;
      return asked === 1 ? { status: 200, headers: {}, body: 7 } : { error: 'offline' };
    },
    onError: (error) => reported.push(error),
  });
  t.after(() => app.close());
  await app.settled(await app.sessionResume());
  const shown = await app.settled(await app.signInComplete(h.SOLO));
  assert.deepEqual([shown.screen, asked], ['sign_in', 2]);
  assert.ok(reported.some((error) => error instanceof h.InvalidError && error.field === '/body'));
});
