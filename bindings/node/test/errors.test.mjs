// Errors: what they say, and that a failure of the host's parts is told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as h from './support.mjs';

test('an error has the class of its status, its code and its field', h.LIMIT, async (t) => {
  const app = await h.open(t);
  assert.equal((await app.settled()).screen, 'sign_in');
  await assert.rejects(app.queueAdd(h.visit()), h.StateError);
  await app.signInComplete(h.SOLO);
  assert.equal((await app.settled()).screen, 'home');
  await assert.rejects(app.queueAdd({ kind: 'activity', payload: { minuts: 5 } }), (error) => {
    assert.ok(error instanceof h.InvalidError);
    assert.ok(error instanceof h.HoldfastError);
    assert.deepEqual([error.name, error.status, error.retryable], ['InvalidError', 1, false]);
    assert.deepEqual([error.code, error.field], ['queue.unknown_column', '/payload/minuts']);
    assert.match(error.message, /^queue\.unknown_column at \/payload\/minuts: .*minutes/);
    return true;
  });
  const id = '01976b36-5e10-7f3a-9c44-2f0a6d1b8e03';
  await assert.rejects(app.queueGet({ id }), h.NotFoundError);
  const other = { ...h.visit(1), id: (await app.queueAdd(h.visit(2))).id };
  await assert.rejects(app.queueAdd(other), h.ConflictError);
});

test('a configuration that is wrong names the field, and leaves nothing open', h.LIMIT, async () => {
  const wrong = h.config(undefined, { policy: { biometrics: 'off' } });
  await assert.rejects(h.Holdfast.open(wrong, h.memory()), (error) => {
    assert.deepEqual([error.code, error.field], ['request.unknown_field', '/policy/biometrics']);
    return true;
  });
  const file = h.config(undefined, { keystore: { kind: 'file' } });
  await assert.rejects(h.Holdfast.open(file, h.memory()), /keystore\.kind is "file"/);
  assert.equal(h.liveCount(), 0);
});

test('what JSON cannot say is refused, and every text arrives unchanged', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(t);
  for (const minutes of [NaN, Infinity]) {
    await assert.rejects(app.queueAdd(h.visit(minutes)), /"minutes" is (NaN|Infinity)/);
  }
  assert.equal((await app.queueList()).items.length, 0);
  const type = 'Besøk på Ås 🙂 "quoted" \\ \u2028';
  const { id } = await app.queueAdd({ ...h.visit(), payload: { type, minutes: 5 } });
  await h.until(async () => (await h.stored(id)) === 1);
  const query = 'select type from activities where id = %s';
  assert.deepEqual(await h.control('POST', '/sql', { query, parameters: [id] }), [{ type }]);
});

// ---- the parts of the host ----

test('an exception of a key store is reported, and counts as `failed`', h.LIMIT, async (t) => {
  const keyStore = new h.MemoryKeyStore();
  const real = keyStore.save.bind(keyStore);
  keyStore.save = async (name, key) => {
    if (name === 'session') throw new Error('no disk');
    real(name, key);
  };
  const reported = [];
  const { screen } = await h.signedIn(t, { keyStore, onError: (error) => reported.push(error.message) });
  assert.equal(screen.screen, 'sign_in');
  assert.ok(reported.includes('no disk'));
});

test('a key that is no key counts as `failed`', h.LIMIT, async (t) => {
  const keyStore = new h.MemoryKeyStore();
  const data = h.config();
  const before = await h.signedIn(t, { keyStore }, data);
  await before.app.close();
  for (const name of keyStore.keys.keys()) keyStore.keys.set(name, 'not base64!');
  const reported = [];
  const app = await h.open(t, { keyStore, onError: (error) => reported.push(error) }, data);
  assert.equal((await h.found(app, ({ screen }) => screen)).message.code, 'keystore_failed');
  assert.ok(reported.some((error) => /no key/.test(error.message)));
  assert.ok(keyStore.keys.size > 0);
});

for (const [name, answer, told] of [
  ['a transport that throws counts as offline', () => Promise.reject(new Error('no stack')), /no stack/],
  ['a result that the library refuses has failed', () => ({ status: 200, headers: {}, body: 7 }), /body/],
]) {
  test(`${name}, and is reported`, h.LIMIT, async (t) => {
    const reported = [];
    const options = { ...h.memory(), transport: answer, onError: (error) => reported.push(error.message) };
    const { screen } = await h.signedIn(t, options);
    assert.equal(screen.screen, 'sign_in');
    assert.match(reported.join(), told);
  });
}
