// SafeStorageKeyStore: files of this user alone, and truthful answers.

import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
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
  const file = join(place, 'keys', 'device.key');
  assert.equal(await store.load('device', null), VALUE);
  assert.deepEqual([join(place, 'keys'), file].map((path) => statSync(path).mode & 0o777), [0o700, 0o600]);
  assert.equal(readFileSync(file).includes(VALUE), false);
  writeFileSync(`${file}.new`, 'half'); // what is left of an interrupted save
  await store.save('device', VALUE.replace('B', 'C'), 'device');
  assert.equal(await store.load('device', null), VALUE.replace('B', 'C'));
  assert.deepEqual(readdirSync(join(place, 'keys')), ['device.key']);
  await store.erase('device');
  assert.deepEqual(readdirSync(join(place, 'keys')), []);
  assert.equal(await store.load('device', null), null);
  await assert.rejects(store.save('../x', VALUE, 'device'), /unknown key/);
});

test('a key whose erasure did not end is gone', async () => {
  const place = h.folder();
  const store = h.desktopKeys(place);
  await store.save('session', VALUE, 'device');
  const file = join(place, 'keys', 'session.key');
  writeFileSync(file, Buffer.alloc(statSync(file).size)); // the process ended before it removed the file
  assert.equal(await store.load('session', null), null);
  await store.save('session', VALUE, 'device');
  assert.equal(await store.load('session', null), VALUE);
});

test('before the app is ready a key is locked, and plain text is refused', async () => {
  const place = h.folder();
  const over = (changed) => new h.SafeStorageKeyStore({ ...h.SAFE_STORAGE, ...changed }, join(place, 'keys'));
  await over({}).save('session', VALUE, 'device');
  for (const [changed, refusal] of [
    [{ isEncryptionAvailable: () => false }, answers('locked')],
    [{ getSelectedStorageBackend: () => 'unknown' }, answers('locked')],
    [{ getSelectedStorageBackend: () => 'basic_text' }, /plain text/],
  ]) {
    await assert.rejects(over(changed).load('session', null), refusal);
    await assert.rejects(over(changed).save('session', VALUE, 'device'), refusal);
    // A key that does not exist is not found, whether the keychain is ready or not.
    assert.equal(await over(changed).load('device', null), null);
  }
});

test('`biometric` asks the user, and only with a prompt', async () => {
  const place = h.folder();
  const prompts = [];
  const store = h.desktopKeys(place, prompts);
  await store.save('biometric', VALUE, 'biometric');
  await assert.rejects(store.load('biometric', null), answers('cancelled'));
  assert.equal(await store.load('biometric', 'Unlock'), VALUE);
  assert.deepEqual(prompts, ['Unlock']);
  const over = (options) => new h.SafeStorageKeyStore(h.SAFE_STORAGE, join(place, 'keys'), options);
  const refusing = (error) => over({ verifyUser: () => Promise.reject(error) }).load('biometric', 'x');
  await assert.rejects(refusing(new Error('no')), answers('cancelled'));
  await assert.rejects(refusing(new h.KeyStoreError('lockout')), answers('lockout'));
  await assert.rejects(over({}).load('biometric', 'x'), answers('unavailable'));
  await assert.rejects(over({}).save('biometric', VALUE, 'biometric'), answers('unavailable'));
});

test('a file, folder or link that others can change is refused', async () => {
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
  renameSync(file, join(place, 'other'));
  symlinkSync(join(place, 'other'), file);
  await assert.rejects(store.load('device', null), (error) => error.code === 'ELOOP');
  await assert.rejects(store.erase('device'), (error) => error.code === 'ELOOP');
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
async function unlocking(t) {
  const keyStore = new Prompting();
  const errors = [];
  const given = h.config(undefined, { policy: { biometric: 'required' } });
  const { app } = await h.signedIn(t, { keyStore, onError: (error) => errors.push(error) }, given);
  await app.sessionLock();
  assert.equal((await app.settled()).can_unlock, true);
  const unlocked = app.sessionUnlock();
  await h.until(() => keyStore.prompts.length === 1);
  return { app, keyStore, errors, unlocked };
}

test('the key that the prompt has released unlocks, and serves nothing else', h.LIMIT, async (t) => {
  const { app, keyStore, errors, unlocked } = await unlocking(t);
  assert.equal((await app.sessionStatus()).state, 'locked'); // a call does not wait for the prompt
  keyStore.prompts[0].release();
  await unlocked;
  assert.equal((await app.settled()).screen, 'home');
  keyStore.quiet.length = 0;
  await app.sessionLogout();
  assert.ok(keyStore.quiet.includes('biometric'), 'the erasure was not checked');
  assert.deepEqual([keyStore.prompts.length, errors], [1, []]);
});

for (const [name, end, expected] of [
  ['what the prompt refuses', ({ prompts }) => prompts[0].refuse('lockout'), ['biometric_lockout', true]],
  ['that the key is gone', ({ keys, prompts }) => (keys.delete('biometric'), prompts[0].release()), [undefined, false]],
]) {
  test(`the outcome of an unlock is ${name}`, h.LIMIT, async (t) => {
    const { app, keyStore, errors, unlocked } = await unlocking(t);
    end(keyStore);
    await unlocked;
    const { screen, message, can_unlock } = await app.settled();
    assert.deepEqual([screen, can_unlock], ['sign_in', expected[1]]);
    if (expected[0]) assert.equal(message.code, expected[0]);
    assert.deepEqual(errors, []);
  });
}

for (const [name, end] of [
  ['a lock', (app) => app.sessionLock()],
  ['a log-out', (app) => app.sessionLogout()],
  ['close', (app) => app.close()],
]) {
  test(`${name} takes the prompt of an unlock back`, h.LIMIT, async (t) => {
    const { app, keyStore, errors, unlocked } = await unlocking(t);
    const called = unlocked.catch((error) => error.code);
    await end(app);
    assert.deepEqual([keyStore.taken, errors], [1, []]);
    await called;
    assert.notEqual(app.closed || (await app.sessionStatus()).state, 'active');
  });
}

test('a second unlock takes the first prompt back, and has its own', h.LIMIT, async (t) => {
  const { app, keyStore, errors, unlocked } = await unlocking(t);
  const again = app.sessionUnlock();
  await unlocked;
  await h.until(() => keyStore.prompts.length === 2);
  keyStore.prompts[1].release();
  await again;
  assert.equal((await app.settled()).screen, 'home');
  assert.deepEqual([keyStore.taken, errors], [1, []]);
});

// Calls on libuv's pool waited for key files, which wait for libuv's pool.
test('key stores that read files serve more handles than libuv has threads', h.LIMIT, async (t) => {
  const opened = Array.from({ length: 12 }, () => {
    const place = h.folder();
    return h.signedIn(t, { keyStore: h.desktopKeys(place) }, h.config(join(place, 'data')));
  });
  const apps = await Promise.all(opened);
  assert.deepEqual(new Set(apps.map(({ screen }) => screen.screen)), new Set(['home']));
});
