// The package as a user gets it: installed from its archive, without a network.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as h from './support.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(ROOT, 'bindings/node/package.json')));
const ARCHIVE = join(ROOT, `build/node/holdfast-${version}.tgz`);

/** A project with the package installed. */
let place;
function project() {
  if (place) return place;
  place = h.folder();
  writeFileSync(join(place, 'package.json'), '{"type":"module"}');
  const npm = join(process.execPath, '..', 'npm');
  const given = ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error', ARCHIVE];
  execFileSync(process.execPath, [npm, ...given], { cwd: place, stdio: 'pipe' });
  return place;
}

/** The first block of the README, against the local backend. */
function example() {
  const [, text] = /```js\n(.*?)```/s.exec(readFileSync(join(ROOT, 'bindings/node/README.md'), 'utf8'));
  return {
    lines: text.trim().split('\n').length,
    text: text
      .replace('https://PROJECT.supabase.co', h.BACKEND)
      .replace("'KEY'", `'${h.KEY}'`)
      .replace('PASSWORD', 'holdfast-demo'),
  };
}

const visits = async () =>
  (await h.control('POST', '/sql', { query: 'select count(*) as n from activities' }))[0].n;

test('the first synced item takes at most 25 lines, and they work', h.LIMIT, async () => {
  const { lines, text } = example();
  assert.ok(lines <= 25, `${lines} lines`);
  assert.ok(text.includes(h.BACKEND) && text.includes(h.KEY));
  writeFileSync(join(project(), 'first.js'), text);
  const before = await visits();
  const given = { cwd: project(), encoding: 'utf8', timeout: h.patienceMs(120) };
  assert.deepEqual(
    (({ status, stdout, stderr }) => ({ status, stdout, stderr }))(spawnSync(process.execPath, ['first.js'], given)),
    { status: 0, stdout: 'home \n', stderr: '' },
  );
  assert.equal(await visits(), before + 1);
});

test('the example signs in once, and keeps what cannot be sent', h.LIMIT, async (t) => {
  t.after(() => h.control('DELETE', '/faults'));
  writeFileSync(join(project(), 'host.mjs'), readFileSync(join(ROOT, 'examples/node/host.mjs')));
  const run = (...more) => {
    const given = ['host.mjs', '--backend', h.BACKEND, '--key', h.KEY, '--data', 'host-data', ...more];
    const env = { ...process.env, HOLDFAST_PASSWORD: 'holdfast-demo' };
    const { status, stdout, stderr } = spawnSync(process.execPath, given, {
      cwd: project(),
      env,
      encoding: 'utf8',
      timeout: h.patienceMs(120),
    });
    assert.equal(stderr, '');
    return { status, lines: stdout.trim().split('\n') };
  };
  const before = await visits();
  const first = run();
  assert.equal(first.status, 0);
  assert.equal(first.lines[0], 'screen: sign_in (session_missing)');
  assert.equal(first.lines.at(-1), 'stored on the server');
  const second = run();
  assert.equal(second.lines.some((line) => line.includes('sign_in')), false);
  assert.equal(await visits(), before + 2);
  await h.control('POST', '/faults', { match: { path: '/rest/v1' }, action: 'drop_before', times: 100000 });
  const third = run('--patience', '1');
  assert.equal(third.status, 1);
  assert.match(third.lines.at(-1), /^not yet sent: /);
  await h.control('DELETE', '/faults');
  assert.equal(run().status, 0);
  assert.equal(await visits(), before + 4);
});

test('the package has what it needs, and says what is in it', h.LIMIT, () => {
  const inside = join(project(), 'node_modules/holdfast');
  for (const name of ['LICENSE', 'LICENSE.libsodium', 'LICENSE.jansson', 'README.md', 'holdfast.cdx.json']) {
    assert.ok(existsSync(join(inside, name)), name);
  }
  const places = readdirSync(join(inside, 'addon'));
  assert.deepEqual(places, [`${process.platform}-${process.arch}`]);
  const { flavour, version: library } = h.buildInfo();
  assert.equal(library, version);
  assert.equal(flavour, 'bundled');
  const script = 'import("holdfast/core").then((core) => console.log(typeof core.Holdfast.openOn))';
  const given = { cwd: project(), encoding: 'utf8' };
  assert.equal(spawnSync(process.execPath, ['-e', script], given).stdout, 'function\n');
});

test('the addon uses stable functions of Node only', h.LIMIT, () => {
  const addon = `build/node/holdfast/addon/${process.platform}-${process.arch}/holdfast.node`;
  const named = execFileSync('nm', ['-D', '--undefined-only', join(ROOT, addon)], { encoding: 'utf8' });
  const names = [...named.matchAll(/ U (\S+)/g)].map(([, name]) => name.split('@')[0]);
  assert.ok(names.some((name) => name.startsWith('napi_')));
  // Nothing of V8 (C++) or libuv, whose interfaces change between versions.
  assert.deepEqual(names.filter((name) => /^(_Z|uv_|node_)/.test(name)), []);
});

test('`holdfast/core` imports nothing of Node', () => {
  const dist = join(ROOT, 'build/node/holdfast/dist');
  const seen = new Set();
  const ahead = ['core.js'];
  while (ahead.length > 0) {
    const name = ahead.pop();
    if (seen.has(name)) continue;
    seen.add(name);
    for (const [, from] of readFileSync(join(dist, name), 'utf8').matchAll(/from '([^']+)'/g)) {
      assert.match(from, /^\.\//, `${name} imports ${from}`);
      ahead.push(from.slice(2));
    }
  }
  assert.ok(seen.has('driver.js'));
  assert.equal(seen.has('safe_storage.js'), false);
});
