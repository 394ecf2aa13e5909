// The package as a user gets it: installed from its archive, without a network.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as h from './support.mjs';

const { version } = JSON.parse(readFileSync(join(h.ROOT, 'bindings/node/package.json')));
const ADDON = `addon/${process.platform}-${process.arch}`;

const PASSWORD = { HOLDFAST_PASSWORD: 'holdfast-demo' };

/** A project with the package installed. */
let place;
function project() {
  if (place) return place;
  place = h.folder();
  writeFileSync(join(place, 'package.json'), '{"type":"module"}');
  const npm = join(process.execPath, '..', 'npm');
  const given = ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error'];
  const archive = join(h.ROOT, `build/node/holdfast-${version}.tgz`);
  execFileSync(process.execPath, [npm, ...given, archive], { cwd: place, stdio: 'pipe' });
  return place;
}

/** What a program prints in a folder of that project. */
function run(text, more = {}) {
  const cwd = mkdtempSync(join(project(), 'run-'));
  writeFileSync(join(cwd, 'main.mjs'), text);
  const env = { ...process.env, HOLDFAST_URL: h.BACKEND, ...PASSWORD, ...more };
  const options = { cwd, env, encoding: 'utf8', timeout: h.patienceMs(120) };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['main.mjs'], options);
  return { status, stderr, lines: stdout.trim().split('\n').map((line) => line.trim()) };
}

const visits = async () =>
  (await h.control('POST', '/sql', { query: 'select count(*) as n from activities' }))[0].n;

test('the first synced item takes at most 25 lines, and they work', h.LIMIT, async () => {
  const [page] = h.blocks('bindings/node/README.md', 'js');
  assert.ok(page.trim().split('\n').length <= 25);
  const text = page.replace('https://PROJECT.supabase.co', h.BACKEND).replace("'KEY'", `'${h.KEY}'`);
  const before = await visits();
  const { status, stderr, lines } = run(text.replace('PASSWORD', 'holdfast-demo'));
  assert.deepEqual([status, stderr, lines.at(-1)], [0, '', 'sent']);
  assert.match(lines.join(), /^sign_in .*select_org .*home/);
  assert.equal(await visits(), before + 1);
  const wrong = run(text.replace('PASSWORD', 'wrong'));
  assert.match(wrong.lines.at(-1), /^sign_in .*password/);
});

test('the example goes all seven steps, and says what is wrong', h.LIMIT, async () => {
  const text = readFileSync(join(h.ROOT, 'examples/node/host.mjs'), 'utf8');
  const before = await visits();
  const { status, stderr, lines } = run(text);
  assert.deepEqual([status, stderr], [0, '']);
  const told = lines.map((line) => /^screen: \w+|[^:]*:/.exec(line)?.[0]);
  const screens = ['sign_in', 'select_org', 'home'].map((name) => `screen: ${name}`);
  const later = ['queued:', 'screen: home', 'the visit:', 'corrected:', 'contacts:', 'screen: sign_in'];
  assert.deepEqual(told, [...screens, ...later]);
  assert.ok(['the visit: stored', 'corrected: stored'].every((line) => lines.includes(line)), lines.join());
  assert.equal(await visits(), before + 1);
  const wrong = run(text, { HOLDFAST_PASSWORD: 'wrong' });
  assert.equal(wrong.status, 1);
  assert.match(wrong.lines.at(-1), /^screen: sign_in .*password/);
});

test('the package has what it needs, and says what is in it', h.LIMIT, () => {
  const inside = join(project(), 'node_modules/holdfast');
  for (const name of ['LICENSE', 'LICENSE.libsodium', 'LICENSE.jansson', 'README.md', 'holdfast.cdx.json']) {
    assert.ok(existsSync(join(inside, name)), name);
  }
  assert.deepEqual(readdirSync(join(inside, 'addon')), [ADDON.slice('addon/'.length)]);
  const { flavour, version: library } = h.buildInfo();
  assert.deepEqual([flavour, library], ['bundled', version]);
  const script = "import * as core from 'holdfast/core';\nconsole.log(typeof core.Holdfast.openOn);";
  assert.deepEqual(run(script).lines, ['function']);
});

test('the addon uses stable functions of Node only', h.LIMIT, () => {
  const addon = join(h.ROOT, 'build/node/holdfast', ADDON, 'holdfast.node');
  const named = execFileSync('nm', ['-D', '--undefined-only', addon], { encoding: 'utf8' });
  const names = [...named.matchAll(/ U (\S+)/g)].map(([, name]) => name.split('@')[0]);
  assert.ok(names.some((name) => name.startsWith('napi_')));
  // Nothing of V8 (C++) or libuv, whose interfaces change between versions.
  assert.deepEqual(names.filter((name) => /^(_Z|uv_|node_)/.test(name)), []);
});

test('`holdfast/core` imports nothing of Node', () => {
  const seen = new Set();
  for (const ahead = ['core.js']; ahead.length > 0; ) {
    const name = ahead.pop();
    if (seen.has(name)) continue;
    seen.add(name);
    const text = readFileSync(join(h.ROOT, 'build/node/holdfast/dist', name), 'utf8');
    for (const [, from] of text.matchAll(/from '([^']+)'/g)) {
      assert.match(from, /^\.\//, `${name} imports ${from}`);
      ahead.push(from.slice(2));
    }
  }
  assert.ok(seen.has('driver.js') && !seen.has('safe_storage.js'));
});
