/**
 * Sessions, tenants, an offline queue and an encrypted cache for apps on Supabase, for Node and
 * Electron.
 *
 * @module
 */

import { createRequire } from 'node:module';
import { Holdfast as Core } from './holdfast.js';
import type { Options } from './holdfast.js';
import type { Native } from './native.js';
import type { BuildInfo, Config } from './types.js';

export * from './core.js';
export { SafeStorageKeyStore } from './safe_storage.js';
export type { SafeStorage, VerifyUser } from './safe_storage.js';

/** The addon. */
interface Addon extends Native {
  liveCount(): number;
  buildInfo(): string;
  logToStderr(level: number): void;
}

let loaded: Addon | undefined;

/** Loaded at first use, so that the types can be imported where there is no addon. */
function addon(): Addon {
  if (!loaded) {
    const name = `../addon/${process.platform}-${process.arch}/holdfast.node`;
    loaded = createRequire(import.meta.url)(name) as Addon;
  }
  return loaded;
}

/** An open data folder, over the addon of this package. */
export class Holdfast extends Core {
  /** Open a data folder and begin to send. Rejects with a `HoldfastError`. */
  static async open(config: Config, options?: Options): Promise<Holdfast> {
    return super.openOn(addon(), config, options) as Promise<Holdfast>;
  }
}

/** The number of open handles and unreleased replies in this process, for leak tests. */
export function liveCount(): number {
  return addon().liveCount();
}

/** What the library consists of. */
export function buildInfo(): BuildInfo {
  return JSON.parse(addon().buildInfo()) as BuildInfo;
}

/**
 * Write the library's log lines to standard error, for the whole process. Level 3 tells the purpose
 * and the status of each response; -1 switches the log off. Lines hold no tokens and no contents.
 */
export function logToStderr(level: -1 | 0 | 1 | 2 | 3): void {
  addon().logToStderr(level);
}
