// Types: the sources, the example and the pages are clean under `tsc --strict`, and wrong code is not.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as h from './support.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** The code blocks of a page in a language. */
const blocks = (page, language) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms)]
    .filter(([, found]) => found === language)
    .map(([, , text]) => text);

// Stand-ins for what the pages import besides: @types/node, Electron's and React Native's types are
// not installed here.
const STANDINS = `
declare module 'node:path' {
  export function join(...parts: string[]): string;
}
declare module 'node:util' {
  export function parseArgs(config: object): { values: Record<string, string | undefined> };
}
declare module 'electron' {
  export const app: { whenReady(): Promise<void> };
  export const net: { fetch(url: string, init: RequestInit): Promise<Response> };
  export const safeStorage: {
    isEncryptionAvailable(): boolean;
    encryptString(text: string): Uint8Array;
    decryptString(encrypted: Uint8Array): string;
    getSelectedStorageBackend(): 'basic_text' | 'unknown' | 'gnome_libsecret';
  };
  export const systemPreferences: { promptTouchID(reason: string): Promise<void> };
}
declare module 'react-native' {
  export interface TurboModule {}
  export const TurboModuleRegistry: { getEnforcing<T extends TurboModule>(name: string): T };
  export const AppState: { addEventListener(type: 'change', each: (state: string) => void): object };
}
declare const process: { env: Record<string, string | undefined>; exitCode?: number };
`;

/** What \`tsc --strict\` says of these files, in a project with the package installed. */
function checked(files) {
  const place = h.folder();
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(join(ROOT, 'build/node/holdfast'), join(place, 'node_modules/holdfast'));
  writeFileSync(join(place, 'package.json'), '{"type":"module"}');
  writeFileSync(join(place, 'standins.d.ts'), STANDINS);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    ...{ noEmit: true, allowJs: true, checkJs: true, types: [] },
    ...{ target: 'es2022', module: 'node16', lib: ['es2022', 'dom', 'dom.iterable'] },
  };
  const project = { compilerOptions, files: ['standins.d.ts', ...Object.keys(files)] };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify(project));
  const { status, stdout } = spawnSync('tsc', ['-p', place], { cwd: place, encoding: 'utf8' });
  return { status, told: stdout };
}

test('the sources are clean under strict', () => {
  const { status, stdout } = spawnSync('tsc', ['-p', join(ROOT, 'bindings/node'), '--noEmit'], {
    encoding: 'utf8',
  });
  assert.deepEqual([status, stdout], [0, '']);
  const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'bindings/node/tsconfig.json')));
  assert.equal(compilerOptions.strict, true);
});

test('the pages and the example are clean under strict', () => {
  const files = { 'host.mjs': readFileSync(join(ROOT, 'examples/node/host.mjs'), 'utf8') };
  const add = (page, language, ending) =>
    blocks(page, language).forEach((text, index) => {
      files[`${page.replace(/\W/g, '_')}_${index}.${ending}`] = text;
    });
  add('bindings/node/README.md', 'js', 'mjs');
  add('bindings/node/README.md', 'ts', 'mts');
  add('docs/react-native.md', 'ts', 'mts');
  assert.ok(Object.keys(files).length >= 4, Object.keys(files).join());
  assert.deepEqual(checked(files), { status: 0, told: '' });
});

const HEAD = "import { Holdfast } from 'holdfast';\nimport type { Event, Decision } from 'holdfast';\n";

test('an event is told by its type, and one of a later version has a place', () => {
  const text = `${HEAD}
    export function told(event: Event): string {
      switch (event.type) {
        case 'decision': return event.decision.reason;
        case 'item_parked': return event.reason.text;
        case 'contact': return event.contact?.name ?? '';
        default: return event.type; // also what this version does not know
      }
    }
    export function exhausted(event: Event): string {
      switch (event.type) {
        case 'decision': case 'sync_progress': case 'sync_completed': case 'item_parked':
        case 'session_ended': case 'org_access_changed': case 'storage_recovered': case 'contact':
        case 'pull_completed': case 'token_changed': return '';
        default: { const other: string = event.type; return other; }
      }
    }
    export const known: Decision['screen'] = 'home';
    export const later: Decision['screen'] = 'a screen of a later version';
    export async function begun(app: Holdfast): Promise<string> {
      const reply = await app.signInBegin({ method: 'x', });
      if ('url' in reply) return reply.url;
      const checked = await app.routeCheck({ route: '/x' });
      return 'allow' in checked ? 'yes' : checked.screen;
    }
    export const columns = async (app: Holdfast): Promise<unknown> =>
      (await app.contactGet({ id: 'x' })).contact['municipality'];`;
  assert.deepEqual(checked({ 'open.mts': text }), { status: 0, told: '' });
});

for (const [name, code, expected] of [
  ['an unknown field of a request', "void app.queueAdd({ kind: 'a', payload: {}, minutes: 5 });", /minutes/],
  ['a missing field', "void app.queueGet({});", /'id' is missing/],
  ['an unknown value of a request', "void app.sessionLogout({ scope: 'everywhere' });", /everywhere/],
  ['a field that a reply has not', 'void app.sessionResume().then((shown) => shown.scren);', /scren/],
  ['a switch without a default', 'export function f(e: Event): string { switch (e.type) { case "decision": case "sync_progress": case "sync_completed": case "item_parked": case "session_ended": case "org_access_changed": case "storage_recovered": case "contact": case "pull_completed": case "token_changed": return ""; } }', /ending return/],
]) {
  test(`tsc finds ${name}`, () => {
    const text = `${HEAD}declare const app: Holdfast;\nexport type Used = Decision & Event;\n${code}\n`;
    const { status, told } = checked({ 'wrong.mts': text });
    assert.notEqual(status, 0);
    assert.match(told, expected);
  });
}
