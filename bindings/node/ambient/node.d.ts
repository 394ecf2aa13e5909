// The few functions of Node that the sources use, for a build without @types/node.

declare module 'node:buffer' {
  export class Buffer extends Uint8Array {
    static alloc(size: number): Buffer;
  }
}

declare module 'node:fs' {
  export const constants: { O_RDONLY: number; O_RDWR: number; O_NOFOLLOW?: number };
}

declare module 'node:fs/promises' {
  import { Buffer } from 'node:buffer';
  interface Stats {
    size: number;
    uid: number;
    mode: number;
  }
  export interface FileHandle {
    stat(): Promise<Stats>;
    readFile(): Promise<Buffer>;
    write(data: Uint8Array, offset: number, length: number, position: number): Promise<unknown>;
    sync(): Promise<void>;
    close(): Promise<void>;
  }
  export function mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>;
  export function open(path: string, flags: string | number, mode?: number): Promise<FileHandle>;
  export function rename(from: string, to: string): Promise<void>;
  export function rm(path: string, options: { force: boolean }): Promise<void>;
  export function stat(path: string): Promise<Stats>;
}

declare module 'node:module' {
  export function createRequire(url: string): (name: string) => unknown;
}

declare module 'node:path' {
  export function join(...parts: string[]): string;
}

declare const process: { platform: string; arch: string; getuid?: () => number };
