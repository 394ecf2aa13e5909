// SafeStorageKeyStore: files of this user alone, and truthful answers.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as h from './support.mjs';

const VALUE = Buffer.alloc(32, 7).toString('base64');
const answers = (result) => (error) => error instanceof h.KeyStoreError && error.result === result;

test('a key is encrypted, and in a file of this user alone', async () => {
  const place = h.folder();
  const store = h.desktopKeys(place);
  assert.equal(await store.load('device', null), null);
  await store.erase('device');
  await store.save('device', VALUE, 'device');
  assert.equal(await store.load('device', null), VALUE);
  const file = join(place, 'keys', 'device.key');
  assert.equal(statSync(join(place, 'keys')).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(readFileSync(file).includes(VALUE), false);
  await store.save('device', VALUE.replace('B', 'C'), 'device');
  assert.equal(await store.load('device', null), VALUE.replace('B', 'C'));
  await store.erase('device');
  assert.deepEqual(readdirSync(join(place, 'keys')), []);
  assert.equal(await store.load('device', null), null);
});

test('before the app is ready a key is locked, and plain text is refused', async () => {
  const place = h.folder();
  const real = h.safeStorage(place);
  await new h.SafeStorageKeyStore(real, join(place, 'keys')).save('session', VALUE, 'device');
  const unready = { ...real, isEncryptionAvailable: () => false };
  const plain = { ...real, getSelectedStorageBackend: () => 'basic_text' };
  const unknown = { ...real, getSelectedStorageBackend: () => 'unknown' };
  for (const storage of [unready, unknown]) {
    const store = new h.SafeStorageKeyStore(storage, join(place, 'keys'));
    await assert.rejects(store.load('session', null), answers('locked'));
    await assert.rejects(store.save('session', VALUE, 'device'), answers('locked'));
  }
  const store = new h.SafeStorageKeyStore(plain, join(place, 'keys'));
  await assert.rejects(store.save('session', VALUE, 'device'), /plain text/);
  await assert.rejects(store.load('session', null), /plain text/);
  // A key that does not exist is not found, whether the keychain is ready or not.
  assert.equal(await store.load('device', null), null);
});

test('`biometric` asks the user, and only with a prompt', async () => {
  const place = h.folder();
  const prompts = [];
  const store = h.desktopKeys(place, prompts);
  await store.save('biometric', VALUE, 'biometric');
  await assert.rejects(store.load('biometric', null), answers('cancelled'));
  assert.equal(await store.load('biometric', 'Unlock'), VALUE);
  assert.deepEqual(prompts, ['Unlock']);
  const refusing = (error) =>
    new h.SafeStorageKeyStore(h.safeStorage(place), join(place, 'keys'), {
      verifyUser: () => Promise.reject(error),
    });
  await assert.rejects(refusing(new Error('no')).load('biometric', 'x'), answers('cancelled'));
  const lockout = new h.KeyStoreError('lockout');
  await assert.rejects(refusing(lockout).load('biometric', 'x'), answers('lockout'));
  await store.erase('biometric');
  assert.equal(await store.load('biometric', null), null);
});

test('without verifyUser `biometric` is unavailable', async () => {
  const place = h.folder();
  const store = new h.SafeStorageKeyStore(h.safeStorage(place), join(place, 'keys'));
  await assert.rejects(store.save('biometric', VALUE, 'biometric'), answers('unavailable'));
  assert.equal(await store.load('biometric', null), null);
});

test('a file or folder that others can read or write is refused', async () => {
  const place = h.folder();
  const store = h.desktopKeys(place);
  await store.save('device', VALUE, 'device');
  const file = join(place, 'keys', 'device.key');
  chmodSync(file, 0o644);
  await assert.rejects(store.load('device', null), /mode 0600/);
  await assert.rejects(store.erase('device'), /mode 0600/);
  chmodSync(file, 0o600);
  chmodSync(join(place, 'keys'), 0o777);
  await assert.rejects(store.load('device', null), /writable by this user alone/);
  await assert.rejects(store.save('device', VALUE, 'device'), /writable by this user alone/);
  chmodSync(join(place, 'keys'), 0o700);
  assert.equal(await store.load('device', null), VALUE);
});

test('a link in the place of a key is not followed', async () => {
  const place = h.folder();
  mkdirSync(join(place, 'keys'), { mode: 0o700 });
  writeFileSync(join(place, 'other'), 'x'.repeat(40), { mode: 0o600 });
  symlinkSync(join(place, 'other'), join(place, 'keys', 'device.key'));
  const store = h.desktopKeys(place);
  await assert.rejects(store.load('device', null), (error) => error.code === 'ELOOP');
  await assert.rejects(store.erase('device'), (error) => error.code === 'ELOOP');
  assert.equal(readFileSync(join(place, 'other'), 'utf8'), 'x'.repeat(40));
});

test('what is left of an interrupted save is replaced', async () => {
  const place = h.folder();
  const store = h.desktopKeys(place);
  await store.save('device', VALUE, 'device');
  writeFileSync(join(place, 'keys', 'device.key.new'), 'half');
  await store.save('device', VALUE, 'device');
  assert.equal(await store.load('device', null), VALUE);
  assert.deepEqual(readdirSync(join(place, 'keys')), ['device.key']);
});

test('a name that is no key never reaches the disk', async () => {
  const store = h.desktopKeys(h.folder());
  await assert.rejects(store.save('../x', VALUE, 'device'), /unknown key/);
});

/** A key store whose prompt stays on the screen until somebody takes it back or answers it. */
class Prompting extends h.MemoryKeyStore {
  prompts = [];
  taken = 0;
  quiet = []; // the keys that were loaded without a prompt

  load(name, prompt, signal) {
    if (prompt === null) {
      this.quiet.push(name);
      if (name === 'biometric' && this.keys.has(name)) throw new h.KeyStoreError('cancelled');
      return super.load(name);
    }
    return new Promise((resolve, reject) => {
      const release = () => resolve(super.load(name));
      this.prompts.push({ prompt, release, refuse: (result) => reject(new h.KeyStoreError(result)) });
      signal.addEventListener('abort', () => {
        this.taken += 1;
        reject(signal.reason);
      });
    });
  }
}

/** A locked app, and the unlock under way with its prompt on the screen. */
async function unlocking() {
  const keyStore = new Prompting();
  const errors = [];
  const options = { keyStore, onError: (error) => errors.push(error) };
  const given = h.config(h.folder(), { policy: { biometric: 'required' } });
  const { app } = await h.signedIn(given, options);
  await app.sessionLock();
  assert.equal((await h.shown(app)).can_unlock, true);
  const unlocked = app.sessionUnlock();
  await h.until(() => keyStore.prompts.length === 1);
  return { app, keyStore, errors, unlocked };
}

test('the key that the prompt has released unlocks, and serves nothing else', h.LIMIT, async () => {
  const { app, keyStore, errors, unlocked } = await unlocking();
  assert.equal((await app.sessionStatus()).state, 'locked'); // a call does not wait for the prompt
  keyStore.prompts[0].release();
  await unlocked;
  assert.equal((await h.shown(app)).screen, 'home');
  keyStore.quiet.length = 0;
  await app.sessionLogout();
  assert.ok(keyStore.quiet.includes('biometric'), 'the erasure was not checked');
  assert.deepEqual([keyStore.prompts.length, errors], [1, []]);
  await app.close();
});

test('what the prompt refuses is the outcome', h.LIMIT, async () => {
  const { app, keyStore, errors, unlocked } = await unlocking();
  keyStore.prompts[0].refuse('lockout');
  await unlocked;
  const refused = await h.shown(app);
  assert.deepEqual([refused.screen, refused.reason], ['sign_in', 'biometric_lockout']);
  assert.deepEqual(errors, []);
  await app.close();
});

test('a missing key is not asked for again', h.LIMIT, async () => {
  const { app, keyStore, unlocked } = await unlocking();
  keyStore.keys.delete('biometric');
  keyStore.prompts[0].release();
  await unlocked;
  const shown = await h.shown(app);
  assert.deepEqual([shown.screen, shown.can_unlock], ['sign_in', false]);
  await app.close();
});

// A lock during an unlock left the prompt on the screen.
for (const [name, end] of [
  ['a lock', (app) => app.sessionLock()],
  ['a log-out', (app) => app.sessionLogout()],
  ['close', (app) => app.close()],
]) {
  test(`${name} takes the prompt of an unlock back`, h.LIMIT, async () => {
    const { app, keyStore, errors, unlocked } = await unlocking();
    const called = unlocked.catch((error) => error.code);
    await end(app);
    assert.deepEqual([keyStore.taken, errors], [1, []]);
    await called;
    assert.notEqual(app.closed || (await app.sessionStatus()).state, 'active');
    await app.close();
  });
}

test('a second unlock takes the first prompt back, and has its own', h.LIMIT, async () => {
  const { app, keyStore, errors, unlocked } = await unlocking();
  const again = app.sessionUnlock();
  await unlocked;
  await h.until(() => keyStore.prompts.length === 2);
  keyStore.prompts[1].release();
  await again;
  assert.equal((await h.shown(app)).screen, 'home');
  assert.deepEqual([keyStore.taken, errors], [1, []]);
  await app.close();
});

// Calls on libuv's pool waited for key files, which wait for libuv's pool.
test('key stores that read files serve more handles than libuv has threads', h.LIMIT, async () => {
  const opened = Array.from({ length: 12 }, () => {
    const place = h.folder();
    return h.signedIn(h.config(join(place, 'data')), { keyStore: h.desktopKeys(place) });
  });
  const apps = await Promise.all(opened);
  assert.deepEqual(new Set(apps.map(({ screen }) => screen.screen)), new Set(['home']));
  await Promise.all(apps.map(({ app }) => app.close()));
});
