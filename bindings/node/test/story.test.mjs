// The story that every binding tells: sign in, choose, lose the network, queue, die, unlock, drain,
// log out, with the key store of a desktop.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as h from './support.mjs';

const CHILD = fileURLToPath(new URL('story_child.mjs', import.meta.url));

test('the story: nothing is lost, and nothing is stored twice', h.LIMIT, async (t) => {
  const place = h.folder();
  const keys = join(place, 'keys');

  // Given a user who signs in, chooses an organisation, loses the network and queues three items
  const child = spawn(process.execPath, [CHILD, place], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  t.after(() => h.control('DELETE', '/faults'));
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const told = JSON.parse(line);
  assert.deepEqual(told.screens, ['sign_in', 'select_org', 'home']);
  assert.equal(told.orgs, 2);
  assert.equal(told.unsent, 3);
  // When the process is killed
  child.kill('SIGKILL');
  const [code, signal] = await once(child, 'exit');
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  for (const id of told.ids) assert.equal(await h.stored(id), 0);
  // Then the keys are encrypted, for this user alone
  assert.deepEqual(readdirSync(keys).sort(), ['biometric.key', 'device.key']);
  for (const file of readdirSync(keys)) assert.equal(statSync(join(keys, file)).mode & 0o777, 0o600);

  // And the next start asks for the user's presence before it shows anything
  const prompts = [];
  const options = { keyStore: h.desktopKeys(place, prompts) };
  const app = await h.Holdfast.open(h.storyConfig(place), options);
  t.after(() => app.close());
  assert.equal((await h.shown(app)).screen, 'unlock');
  await assert.rejects(app.queueList(), (error) => error.code === 'session.locked');
  assert.deepEqual(prompts, []);
  await app.sessionUnlock();
  const home = await h.shown(app);
  assert.equal(home.screen, 'home');
  assert.equal(home.org.id, h.NORDLYS);
  assert.equal(prompts.length, 1);
  assert.deepEqual((await app.queueList()).items.map(({ id }) => id), told.ids);

  // When the network is back, every item is stored once
  await h.control('DELETE', '/faults');
  await app.syncNow();
  await h.found(app, ({ sync, notice }) => {
    assert.equal(notice, undefined);
    return sync && sync.left === 0;
  });
  for (const id of told.ids) assert.equal(await h.stored(id), 1);

  // And a logout leaves no key of the session
  assert.deepEqual(await app.sessionLogout(), { unsent: 0 });
  assert.equal((await h.shown(app)).screen, 'sign_in');
  await h.until(async () => (await app.sessionStatus()).owed.length === 0);
  assert.deepEqual(readdirSync(keys), ['device.key']);
  await app.close();
  assert.equal(h.liveCount(), 0);
  assert.ok(existsSync(join(place, 'data', 'holdfast.db')));
});
