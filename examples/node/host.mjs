// @ts-check
/**
 * A host: signs in, registers a visit, and reports when the server has stored it.
 *
 * Usage: host.mjs --backend URL --key KEY [--data FOLDER] [--email E-MAIL] [--patience SECONDS]
 *
 * The password comes from HOLDFAST_PASSWORD. Run it twice: the second run needs no sign-in. Run it
 * without a network: the visit stays on disk, and the next run sends it.
 */

import { parseArgs } from 'node:util';
import { Holdfast } from 'holdfast';

const { values: given } = parseArgs({
  options: {
    backend: { type: 'string' },
    key: { type: 'string' },
    data: { type: 'string', default: 'app-data' },
    email: { type: 'string', default: 'solo@example.org' },
    patience: { type: 'string', default: '30' },
  },
});
if (!given.backend || !given.key) throw new Error('--backend and --key are required');

/**
 * While the decision is `wait`, the library sends another one in bounded time.
 *
 * @param {Holdfast} app
 * @param {import('holdfast').Decision} decision
 */
async function shown(app, decision) {
  const settled = await app.settled(decision);
  console.log(`screen: ${settled.screen} (${settled.reason})`);
  return settled;
}

/**
 * Register a visit; whether the server has stored it.
 *
 * @param {Holdfast} app
 */
async function run(app) {
  let decision = await shown(app, await app.sessionResume());
  if (decision.screen === 'sign_in') {
    const password = process.env.HOLDFAST_PASSWORD ?? '';
    decision = await shown(app, await app.signInComplete({ email: given.email ?? '', password }));
  }
  if (decision.screen === 'select_org') {
    const org_id = decision.orgs[0]?.org_id ?? '';
    decision = await shown(app, await app.orgSelect({ org_id }));
  }
  if (decision.screen !== 'home') return false;
  await app.syncNow(); // the user has opened the app: send and fetch at once
  const payload = { type: 'visit', minutes: 45 };
  const { id } = await app.queueAdd({ kind: 'activity', payload, occurred_at_ms: Date.now() });
  console.log(`registered: ${id}`); // on disk now: a crash does not lose it
  // Closing ends the iteration.
  const patience = setTimeout(() => void explain(app), Number(given.patience) * 1000);
  for await (const event of app.events()) {
    if (event.type === 'item_parked') console.log(`needs attention: ${event.reason.text}`);
    if (event.type !== 'sync_completed') continue;
    if ((await app.queueGet({ id })).state !== 'stored') continue;
    clearTimeout(patience);
    console.log('stored on the server');
    return true;
  }
  return false;
}

/**
 * Say why nothing is sent, and end.
 *
 * @param {Holdfast} app
 */
async function explain(app) {
  const { reasons } = await app.queueExplain();
  console.log('not yet sent:', reasons.map(({ text }) => text).join(' '));
  await app.close();
}

const app = await Holdfast.open({
  data_dir: given.data ?? 'app-data',
  backend: { url: given.backend, api_key: given.key },
  auth_methods: [{ id: 'password', flow: 'password', label: 'E-mail' }],
  keystore: { kind: 'file' },
  policy: { biometric: 'off' },
  locale: 'en',
});
const stored = await run(app);
await app.close();
process.exitCode = stored ? 0 : 1;
