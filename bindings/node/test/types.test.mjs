// Types: the sources, the example and the pages are clean under `tsc --strict`, and wrong code is not.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as h from './support.mjs';

// Stand-ins for what the pages import besides: @types/node, Electron's and React Native's types are
// not installed here.
const STANDINS = `
declare module 'node:path' {
  export function join(...parts: string[]): string;
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
declare const process: { argv: string[]; env: Record<string, string | undefined>; exit(code: number): never };
`;

/** What \`tsc --strict\` says of these files, in a project with the package installed. */
function checked(files) {
  const place = h.folder();
  mkdirSync(join(place, 'node_modules'));
  symlinkSync(join(h.ROOT, 'build/node/holdfast'), join(place, 'node_modules/holdfast'));
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
  return spawnSync('tsc', ['-p', place], { cwd: place, encoding: 'utf8' });
}

test('the sources, the pages and the example are clean under strict', () => {
  const sources = ['-p', join(h.ROOT, 'bindings/node'), '--noEmit'];
  const { status, stdout } = spawnSync('tsc', sources, { encoding: 'utf8' });
  assert.deepEqual([status, stdout], [0, '']);
  const files = { 'host.mjs': readFileSync(join(h.ROOT, 'examples/node/host.mjs'), 'utf8') };
  for (const page of ['bindings/node/README.md', 'docs/react-native.md']) {
    for (const language of ['js', 'ts']) {
      h.blocks(page, language).forEach((text, index) => {
        files[`${page.replace(/\W/g, '_')}_${index}.m${language}`] = text;
      });
    }
  }
  assert.ok(Object.keys(files).length >= 4, Object.keys(files).join());
  assert.equal(checked(files).stdout, '');
});

const HEAD = "import type { Decision, Holdfast, News, Notice } from 'holdfast';\n";

test('what comes is told apart, and what a later version adds has a place', () => {
  const text = `${HEAD}
    export function told(news: News): string {
      if ('screen' in news) return news.screen.message?.code ?? '';
      if ('sync' in news) return String(news.sync.left);
      if ('answer' in news) return news.answer.to === 'contact_get' ? (news.answer.contact?.name ?? '') : '';
      if ('wake_in_ms' in news) return '';
      switch (news.notice.type) {
        case 'item_parked': return news.notice.id;
        default: return news.notice.text; // also what this version does not know
      }
    }
    export const known: Decision['screen'] = 'home';
    export const later: Decision['screen'] = 'a screen of a later version';
    export async function begun(app: Holdfast): Promise<string> {
      for await (const news of app) if ('screen' in news) break;
      const reply = await app.signInBegin({ method: 'x' });
      if ('url' in reply) return reply.url;
      const checked = await app.routeCheck({ route: '/x' });
      return 'allow' in checked && checked.allow ? 'yes' : 'no';
    }
    export const columns = async (app: Holdfast): Promise<unknown> =>
      (await app.contactGet({ id: 'x' })).contact['municipality'];`;
  assert.equal(checked({ 'open.mts': text }).stdout, '');
});

const ONLY_KNOWN = `export function f(notice: Notice): string { switch (notice.type) {
  case 'item_parked': case 'session_ended': case 'org_access_changed': case 'storage_recovered': return ''; } }`;

for (const [name, code, expected] of [
  ['an unknown field of a request', "void app.queueAdd({ kind: 'a', payload: {}, minutes: 5 });", /minutes/],
  ['a missing field', 'void app.queueGet({});', /'id' is missing/],
  ['an unknown value of a request', "void app.sessionLogout({ unsent: 'drop' });", /drop/],
  ['a field that a reply has not', 'void app.screen?.scren;', /scren/],
  ['a switch without a default', ONLY_KNOWN, /ending return/],
]) {
  test(`tsc finds ${name}`, () => {
    const text = `${HEAD}declare const app: Holdfast;\nexport type Used = Decision & News & Notice;\n${code}\n`;
    assert.match(checked({ 'wrong.mts': text }).stdout, expected);
  });
}
