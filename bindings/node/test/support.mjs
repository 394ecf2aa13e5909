// What the tests share: the built package, the local backend, configurations.

import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export * from '../../../build/node/holdfast/dist/index.js';
import { Holdfast, MemoryKeyStore, SafeStorageKeyStore } from '../../../build/node/holdfast/dist/index.js';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const BACKEND = process.env.HOLDFAST_BACKEND;
export const KEY = process.env.HOLDFAST_KEY;

export const SOLO = { email: 'solo@example.org', password: 'holdfast-demo' };

/** HOLDFAST_PATIENCE multiplies every limit of time, for a machine under load. */
const FACTOR = Number(process.env.HOLDFAST_PATIENCE ?? 1);
export const patienceMs = (seconds) => Math.round(seconds * 1000 * FACTOR);
/** The limit of a test, which tells a hang. */
export const LIMIT = { timeout: patienceMs(300) };

export const folder = () => mkdtempSync(join(process.env.HOLDFAST_FOLDER, 'test-'));

export function config(data_dir = folder(), more = {}) {
  const backend = { url: BACKEND, api_key: KEY };
  return { data_dir, backend, template: 'volunteers', policy: { biometric: 'off' }, ...more };
}

/** The code blocks of a page in a language. */
export const blocks = (page, language) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , text]) => text);

/** A request to the backend's control endpoint (Tests/server). */
export async function control(method, path, sent = {}) {
  const body = method === 'GET' ? null : JSON.stringify(sent);
  const response = await fetch(`${BACKEND}/_control${path}`, { method, body });
  const value = await response.json();
  if (response.status !== 200) throw new Error(JSON.stringify(value));
  return value;
}

export async function stored(id) {
  const query = 'select count(*) as n from activities where id = %s';
  return (await control('POST', '/sql', { query, parameters: [id] }))[0].n;
}

export const visit = (minutes = 45) => ({
  kind: 'activity',
  payload: { type: 'visit', minutes },
  occurred_at_ms: Date.now(),
});

/** What `wanted` makes of the first thing for which that is something. */
export async function found(app, wanted) {
  for await (const news of app) {
    const value = await wanted(news);
    if (value) return value;
  }
  throw new Error('the handle is closed');
}

/** Open, until the test ends, if it is one. */
export async function open(t, options = memory(), given = config()) {
  const app = await Holdfast.open(given, options);
  t?.after(() => app.close());
  return app;
}

/** Open, and sign in: the screen after it. */
export async function signedIn(t, options, given) {
  const app = await open(t, options, given);
  await app.settled();
  await app.signInComplete(SOLO);
  return { app, screen: await app.settled() };
}

export const memory = () => ({ keyStore: new MemoryKeyStore() });

/** Until the function gives something; the test runner's limit ends it otherwise. */
export async function until(asked, pause = 20) {
  for (;;) {
    const found = await asked();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** An object of the shape of `safeStorage`: not the text, and the text again. */
const turned = (bytes) => Buffer.from(bytes).map((byte) => byte ^ 0x5a);
export const SAFE_STORAGE = {
  isEncryptionAvailable: () => true,
  encryptString: (text) => turned(Buffer.from(text)),
  decryptString: (encrypted) => turned(encrypted).toString(),
};

/** The key store of a desktop app; `prompts` collects what the user was asked. */
export function desktopKeys(place, prompts = []) {
  return new SafeStorageKeyStore(SAFE_STORAGE, join(place, 'keys'), {
    verifyUser: async (prompt) => void prompts.push(prompt),
  });
}
