// The first half of the story, in a process that is killed: story_child.mjs FOLDER

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as h from './support.mjs';

const app = await h.Holdfast.open(h.storyConfig(process.argv[2]), {
  keyStore: h.desktopKeys(process.argv[2]),
});
const told = { screens: [] };
const screens = async () => {
  const shown = await h.shown(app);
  told.screens.push(shown.screen);
  return shown;
};
await screens();
await app.signInComplete(h.MENTOR);
told.orgs = (await screens()).orgs.length;
await app.orgSelect({ org_id: h.NORDLYS });
await screens();
// The network goes: the server closes every connection.
await h.control('POST', '/faults', { match: { path: '/rest/v1' }, action: 'drop_before', times: 100000 });
told.ids = [];
for (const minutes of [10, 20, 30]) told.ids.push((await app.queueAdd(h.visit(minutes))).id);
const { counts } = await app.syncStatus();
told.unsent = counts.pending + counts.sending + counts.waiting;
// The user turns to another app, and the system ends this one.
await app.sessionBackground();
await h.until(() => !existsSync(join(process.argv[2], 'keys', 'session.key')));
process.stdout.write(`${JSON.stringify(told)}\n`);
// Until it is killed; the open handle keeps the process.
