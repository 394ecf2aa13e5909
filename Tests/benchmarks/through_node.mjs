// Measures the library through its binding for Node, as an app uses it.
//
// through_node.mjs burst|single FOLDER COUNT: session_status 100 at once, or each awaited before the
// next. Prints what bench.h's report() prints.

import { Holdfast } from '../../build/node/holdfast/dist/index.js';

const [mode, folder, count] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const BURST = 100;

/** Answers the requests of an idle app with nothing new. */
const transport = async () => ({ error: 'offline' });

const app = await Holdfast.open(
  {
    data_dir: `${folder}/data`,
    backend: { url: 'http://127.0.0.1:9', api_key: 'public-key' },
    template: 'volunteers',
    development: true,
  },
  { transport },
);
await app.networkReport({ online: false });
const samples = [];
if (mode === 'burst') {
  for (let done = 0; done < count; done += BURST) {
    const start = process.hrtime.bigint();
    await Promise.all(Array.from({ length: BURST }, () => app.sessionStatus()));
    samples.push(Number(process.hrtime.bigint() - start) / 1e9 / BURST);
  }
} else {
  for (let done = 0; done < count; done += 1) {
    const start = process.hrtime.bigint();
    await app.sessionStatus();
    samples.push(Number(process.hrtime.bigint() - start) / 1e9);
  }
}
const { state } = await app.sessionStatus();
if (state !== 'active') throw new Error(`the session is ${state}`);
await app.close();
console.log(JSON.stringify({ samples, items: count, requests: 0 }));
