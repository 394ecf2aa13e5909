// @ts-check
/**
 * A whole app in seven steps: sign in, choose, queue offline, restart, correct, search, log out.
 *
 * Usage: host.mjs [E-MAIL], with HOLDFAST_URL, HOLDFAST_KEY and HOLDFAST_PASSWORD set.
 */

import { Holdfast } from 'holdfast';

const { HOLDFAST_URL: url = '', HOLDFAST_KEY: api_key = '', HOLDFAST_PASSWORD: password = '' } = process.env;
const email = process.argv[2] ?? 'mentor@example.org';

const open = () =>
  Holdfast.open({
    data_dir: 'app-data',
    // What is stored stays in the cache, and can be corrected.
    backend: { url, api_key, queue: { activity: { table: 'activities', own: {}, change: {} } } },
    template: 'volunteers',
    development: true, // an app passes its platform's key store
  });

let app = await open();

/** The next screen that waits for the user; an app draws it. */
async function settled() {
  const next = await app.settled();
  console.log('screen:', next.screen, next.message?.text ?? '');
  return next;
}

// Sign in, and choose an organisation.
let shown = await settled();
if (shown.screen === 'sign_in') {
  await app.signInComplete({ email, password });
  shown = await settled();
}
if (shown.screen === 'select_org') {
  await app.orgSelect({ org_id: shown.orgs.find(({ status }) => status === 'active')?.org_id ?? '' });
  shown = await settled();
}
if (shown.screen !== 'home') process.exit(1); // its message is on the screen

// Queue a visit without a network. It is on disk now: a crash does not lose it.
await app.networkReport({ online: false });
const payload = { type: 'visit', minutes: 45 };
const { id } = await app.queueAdd({ kind: 'activity', payload, occurred_at_ms: Date.now() });
console.log('queued:', ...(await app.queueExplain()).reasons.map(({ text }) => text));
await app.close();

// Start again, without a sign-in. The visit is sent, and the contacts are fetched.
app = await open();
await settled();
for await (const news of app) {
  if ('notice' in news) console.log('notice:', news.notice.text); // the server has refused the visit
  if (!('sync' in news) || news.sync.contacts_ms === null) continue;
  const { state } = await app.queueGet({ id });
  if (state !== 'stored' && state !== 'parked') continue;
  console.log('the visit:', state);
  break;
}

// Correct it, which needs no network, either. `base` is what the user has seen.
const { items } = await app.itemList({ kind: 'activity' });
const seen = items.find((item) => item.id === id);
if (seen?.state === 'stored') {
  await app.queueEdit({ id, base: seen.payload, payload: { minutes: 60 } });
  for await (const news of app) if ('sync' in news && news.sync.ids.includes(id)) break;
  console.log('corrected:', (await app.queueGet({ id })).state);
}

// Search, and log out. The logout is refused while something is unsent.
const found = await app.contactSearch({ query: '', limit: 3 });
console.log('contacts:', found.total, ...found.contacts.map(({ name }) => name));
await app.sessionLogout();
await settled();
await app.close();
