// @ts-check
/**
 * The life of an app in six steps: sign in, choose an organisation, queue a visit without a network,
 * start again without a sign-in, search, log out.
 *
 *     HOLDFAST_URL=... HOLDFAST_KEY=... HOLDFAST_PASSWORD=... node host.mjs [FOLDER]
 */

import { Holdfast } from 'holdfast';

const { HOLDFAST_URL: url = '', HOLDFAST_KEY: api_key = '', HOLDFAST_PASSWORD: password = '' } = process.env;

const open = () =>
  Holdfast.open({
    data_dir: process.argv[2] ?? 'visits-data',
    backend: { url, api_key },
    auth_methods: [{ id: 'password', flow: 'password' }],
    keystore: { kind: 'file' },
    policy: { biometric: 'off' },
  });

/**
 * Show what comes, until one thing is wanted.
 *
 * @template Value
 * @param {(news: import('holdfast').News) => Value | false | null} wanted
 */
async function next(wanted) {
  for await (const news of app) {
    if ('screen' in news && news.screen.screen !== 'wait') console.log(news.screen.screen);
    if ('notice' in news) console.log(`notice: ${news.notice.text}`); // an item was refused, ...
    const found = wanted(news);
    if (found) return found;
  }
  throw new Error('the app was closed');
}

/** The next screen that asks the user for something. */
const screen = () => next((news) => 'screen' in news && news.screen.screen !== 'wait' && news.screen);

let app = await open();
let shown = await screen();
if (shown.screen === 'sign_in') {
  await app.signInComplete({ email: 'mentor@example.org', password });
  shown = await screen();
}
if (shown.screen === 'select_org') {
  await app.orgSelect({ org_id: shown.orgs.find(({ status }) => status === 'active')?.org_id ?? '' });
  shown = await screen();
}
if (shown.screen !== 'home') {
  console.error(`${shown.screen}: ${shown.message?.text ?? shown.reason}`);
  process.exit(1);
}

await app.networkSet({ online: false });
const payload = { type: 'visit', minutes: 45 };
const { id } = await app.queueAdd({ kind: 'activity', payload, occurred_at_ms: Date.now() });
console.log(`queued: ${id}`); // it is on the disk
await app.close();

app = await open();
await screen();
await next((news) => 'sync' in news && news.sync.ids.includes(id));
console.log('sent');

let found = await app.contactSearch({ query: 'a' });
while (found.as_of_ms === null) { // the first pull is not complete
  await next((news) => 'sync' in news && news.sync.contacts_ms !== null);
  found = await app.contactSearch({ query: 'a' });
}
console.log(`found: ${found.contacts.map(({ name }) => name).join(', ')}`);

const { unsent } = await app.sessionLogout({ unsent: 'keep' });
console.log(`signed out, ${unsent} unsent`);
await app.close();
