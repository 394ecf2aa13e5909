// The loop: what comes, to one reader, and what happens to it at the end.

import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { test } from 'node:test';
import * as h from './support.mjs';

test('the first screen comes first, and only the newest screen comes', h.LIMIT, async (t) => {
  const app = await h.open(t);
  assert.equal(app.screen.screen, 'sign_in');
  assert.deepEqual(await app.next(), { screen: app.opened.screen });
  const nothing = await app.next(0);
  assert.deepEqual(Object.keys(nothing), ['wake_in_ms']);
  await app.signInComplete(h.SOLO);
  await h.until(async () => (await app.sessionStatus()).state === 'active');
  assert.equal(app.screen.screen, 'sign_in');
  assert.equal((await app.settled()).screen, 'home');
  assert.equal(app.screen.screen, 'home');
});

test('the screen of the open does not come once a call has led to another', h.LIMIT, async (t) => {
  const app = await h.open(t);
  await app.signInComplete(h.SOLO);
  const { screen } = await app.next();
  assert.ok(['wait', 'home'].includes(screen.screen), screen.screen);
});

test('a failure withholds no screen', h.LIMIT, async (t) => {
  const data = h.config();
  const app = await h.open(t, { ...h.memory(), onError: () => {} }, data);
  renameSync(data.data_dir, `${data.data_dir}-gone`);
  assert.deepEqual(await app.next(), { screen: app.opened.screen });
  await assert.rejects(app.next(0), h.StorageError);
});

test('the next screen but `wait` is settled, and the rest is kept', h.LIMIT, async (t) => {
  const { app } = await h.signedIn(t);
  const locked = app.settled();
  const { id } = await app.queueAdd(h.visit(100_000)); // the server refuses it
  await h.until(async () => (await app.syncStatus()).counts.parked === 1);
  await app.sessionLock();
  assert.equal((await locked).screen, 'sign_in');
  assert.equal(await h.found(app, ({ notice }) => notice?.id), id);
  await app.close();
  await assert.rejects(app.settled(), h.ClosedError);
});

test('there is one reader, and it learns of the end', h.LIMIT, async (t) => {
  const app = await h.open(t);
  await app.next();
  const waiting = app.next();
  await assert.rejects(app.next(), /there can be one/);
  await app.close();
  while (await waiting.then((news) => news && app.next()));
  assert.equal(await app.next(), null);
  for await (const news of app) assert.fail(JSON.stringify(news));
});

test('asking for the next thing acknowledges a notice', h.LIMIT, async (t) => {
  const [keys, data] = [h.memory(), h.config()];
  const parked = ({ notice }) => (notice?.type === 'item_parked' ? notice.id : null);
  const { app } = await h.signedIn(t, keys, data);
  const { id } = await app.queueAdd(h.visit(100_000)); // the server refuses it
  assert.equal(await h.found(app, parked), id);
  await app.close();
  const again = await h.open(t, keys, data);
  assert.equal(await h.found(again, parked), id);
  await again.next(0);
  await again.close();
  const last = await h.open(t, keys, data);
  for (let news; !('wake_in_ms' in (news = await last.next(0))); ) assert.equal(parked(news), null);
});

test('a key store that is locked leads to `wait`, and is asked again', h.LIMIT, async (t) => {
  const keyStore = new h.MemoryKeyStore();
  const data = h.config();
  const first = await h.signedIn(t, { keyStore }, data);
  await first.app.close();
  const load = keyStore.load.bind(keyStore);
  keyStore.load = () => {
    throw new h.KeyStoreError('locked');
  };
  const app = await h.open(t, { keyStore }, data);
  const waits = await h.found(app, ({ screen }) => screen);
  assert.deepEqual([waits.screen, waits.message.code], ['wait', 'keystore_locked']);
  keyStore.load = load;
  await app.sessionResume();
  assert.equal((await app.settled()).screen, 'home');
});
