// A worker thread with a handle of its own (lifecycle.test.mjs).

import { parentPort, workerData } from 'node:worker_threads';
import * as h from './support.mjs';

const { config, task } = workerData;

if (task === 'opening') {
  for (let index = 0; index < 4; index += 1) void h.Holdfast.open(config, h.memory());
  parentPort.postMessage('opening');
} else if (task === 'work') {
  const { app, screen } = await h.signedIn(null, h.memory(), config);
  const { id } = await app.queueAdd(h.visit());
  await h.found(app, ({ sync }) => sync?.ids.includes(id));
  const { state } = await app.queueGet({ id });
  await app.close();
  parentPort.postMessage({ screen: screen.screen, stored: state });
} else {
  const app = await h.Holdfast.open(config, h.memory());
  const reading = app.next().then(() => app.next());
  reading.catch(() => {});
  if (task === 'calls') {
    for (let index = 0; index < 500; index += 1) app.sessionStatus().catch(() => {});
  }
  parentPort.postMessage(task);
  if (task === 'left') process.exit(0); // ends this thread only
}
