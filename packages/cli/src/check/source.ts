import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { errorCodeOf } from "@skald/model";
import { type FileRangeReader, type ObjectStore, openFileRange } from "@skald/storage";

export interface FoundFile {
  /** Path below the directory, or key. */
  readonly name: string;
  readonly sizeBytes: number;
}

/** What is verified: files by name. Reading throws `not_found` for one that is gone. */
export interface Source {
  /** In ascending order of their names. */
  list(prefix?: string): Promise<FoundFile[]>;
  open(file: FoundFile): Promise<FileRangeReader>;
  read(file: FoundFile): Promise<Buffer>;
  close(): Promise<void>;
}

/** A directory and all below it, or one file. Throws when there is none. */
export async function directorySource(path: string): Promise<Source> {
  const isFile = (await stat(path)).isFile();
  const root = isFile ? dirname(path) : path;
  return {
    list: async (prefix = "") => {
      if (isFile) return [{ name: basename(path), sizeBytes: statSync(path).size }];
      const entries = await readdir(join(root, prefix), { recursive: true, withFileTypes: true });
      const files = entries.flatMap((entry) => {
        if (!entry.isFile()) return [];
        const full = join(entry.parentPath, entry.name);
        const found = statSync(full, { throwIfNoEntry: false });
        const name = relative(root, full).replaceAll("\\", "/");
        return found === undefined ? [] : [{ name, sizeBytes: found.size }];
      });
      return files.sort(byName);
    },
    open: async ({ name }) => openFileRange(join(root, name)),
    read: async ({ name }) => readFileSync(join(root, name)),
    close: async () => {},
  };
}

const partBytes = 8 * 1024 * 1024;

/** The objects of a bucket; each segment is copied to a temporary file, so that memory does not grow with it. */
export function bucketSource(store: ObjectStore, closeStore: () => Promise<void>): Source {
  const { signal } = new AbortController();
  const directory = mkdtempSync(join(tmpdir(), "skald-verify-"));
  const path = join(directory, "object");
  return {
    list: async (prefix = "") => {
      const files: FoundFile[] = [];
      for await (const { key, sizeBytes } of store.list(prefix, { signal }))
        files.push({ name: key, sizeBytes });
      return files;
    },
    open: async ({ name, sizeBytes }) => {
      const fd = openSync(path, "w");
      try {
        for (let offset = 0; offset < sizeBytes; offset += partBytes) {
          const length = Math.min(partBytes, sizeBytes - offset);
          const bytes = await store.getRange(name, { offset, length }, { signal });
          for (let at = 0; at < length; ) at += writeSync(fd, bytes, at);
        }
      } finally {
        closeSync(fd);
      }
      return openFileRange(path);
    },
    read: async ({ name }) => Buffer.from(await store.get(name, { signal })),
    close: async () => {
      rmSync(directory, { recursive: true, force: true });
      await closeStore();
    },
  };
}

/** True for what reading throws of a file that was deleted since it was listed. */
export function isGone(error: unknown): boolean {
  return errorCodeOf(error) === "not_found" || (error as NodeJS.ErrnoException).code === "ENOENT";
}

function byName(a: FoundFile, b: FoundFile): number {
  return a.name < b.name ? -1 : 1;
}
