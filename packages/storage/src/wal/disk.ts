import { join } from "node:path";
import { type FileHandle, open, readdir, rename, rm, stat, statfs } from "../files.js";
import { makeLastingDirectory, syncDirectory, withFile } from "../syncs.js";

/** The file system as the write-ahead log uses it; tests put a failing one in its place. */
export interface WalDisk {
  /** Names in the directory, which is made when it is not there. */
  list(dir: string): Promise<string[]>;
  /** Creates a file that must not be there yet. */
  create(path: string): Promise<WalDiskFile>;
  sizeOf(path: string): Promise<number>;
  read(path: string): Promise<Buffer>;
  /** The first bytes of a file, as many as it has of them. */
  readHead(path: string, length: number): Promise<Buffer>;
  /** Writes a whole file and syncs it. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  /** Overwrites bytes of a file and syncs it. */
  patch(path: string, offset: number, bytes: Uint8Array): Promise<void>;
  truncate(path: string, sizeBytes: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Makes creations and deletions in the directory survive a power cut. */
  syncDir(dir: string): Promise<void>;
  /** How large the disk of a directory is, and what is left of it. */
  space(dir: string): Promise<DiskSpace>;
}

/** Bytes that a program without privileges may have, as `df` counts them. */
export interface DiskSpace {
  readonly totalBytes: number;
  readonly freeBytes: number;
}

/** A file open for appending. */
export interface WalDiskFile {
  /** Appends what it can and returns how many bytes it took. */
  writev(parts: readonly Uint8Array[]): Promise<number>;
  datasync(): Promise<void>;
  truncate(sizeBytes: number): Promise<void>;
  close(): Promise<void>;
}

/** The disk of this machine. */
export const nodeWalDisk: WalDisk = {
  async list(dir) {
    await makeLastingDirectory(dir);
    return readdir(dir);
  },
  async create(path) {
    return appendTo(await open(path, "ax"));
  },
  async sizeOf(path) {
    return (await stat(path)).size;
  },
  read: (path) => withFile(path, "r", (file) => file.readFile()),
  readHead: (path, length) =>
    withFile(path, "r", async (file) => {
      const head = Buffer.alloc(length);
      const { bytesRead } = await file.read(head, 0, length, 0);
      return head.subarray(0, bytesRead);
    }),
  write: (path, bytes) =>
    withFile(path, "w", async (file) => {
      await file.writeFile(bytes);
      await file.sync();
    }),
  truncate: (path, sizeBytes) =>
    withFile(path, "r+", async (file) => {
      await file.truncate(sizeBytes);
      await file.sync();
    }),
  patch: (path, offset, bytes) =>
    withFile(path, "r+", async (file) => {
      await file.write(bytes, 0, bytes.byteLength, offset);
      await file.sync();
    }),
  rename,
  remove: (path) => rm(path, { force: true }),
  syncDir: syncDirectory,
  async space(dir) {
    const { blocks, bfree, bavail, bsize } = await statfs(dir);
    return { totalBytes: (blocks - bfree + bavail) * bsize, freeBytes: bavail * bsize };
  },
};

/** Path of the log file of a number; numbers ascend with time. */
export function walPath(dir: string, number: number): string {
  return join(dir, `${String(number).padStart(8, "0")}.wal`);
}

/** Numbers of the log files among the names, ascending. */
export function walNumbers(names: readonly string[]): number[] {
  const numbers = names.flatMap((name) => {
    const match = /^(\d{8,15})\.wal$/.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
  return numbers.sort((a, b) => a - b);
}

function appendTo(file: FileHandle): WalDiskFile {
  return {
    writev: async (parts) => (await file.writev(parts)).bytesWritten,
    datasync: () => file.datasync(),
    truncate: (sizeBytes) => file.truncate(sizeBytes),
    close: () => file.close(),
  };
}
