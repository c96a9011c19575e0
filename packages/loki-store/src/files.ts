import { type Dirent, existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCodeOf, notFound } from "@skald/model";
import type { ObjectStore } from "@skald/storage";

/** The files of a store of Loki, by names with slashes. Nothing is ever written to it. */
export interface LokiFiles {
  /** All files whose names begin with a folder, `a/b/`. */
  list(folder: string): Promise<string[]>;
  /** Throws `not_found` for a file that is not there. */
  read(name: string): Promise<Uint8Array>;
  /** The bytes of a file, or its path on this machine: a thread reads that itself. Throws `not_found`, too. */
  open(name: string): Promise<Uint8Array | string>;
}

/** The folder of a filesystem store. */
export function directoryFiles(root: string): LokiFiles {
  return {
    list: async (folder) => {
      const entries = await readdir(join(root, folder), {
        recursive: true,
        withFileTypes: true,
      }).catch((error: NodeJS.ErrnoException): Dirent[] => {
        if (error.code === "ENOENT") return [];
        throw error;
      });
      const full = entries
        .filter((entry) => entry.isFile())
        .map((one) => join(one.parentPath, one.name));
      return full.map((path) => path.slice(join(root, "/").length).replaceAll("\\", "/")).sort();
    },
    read: (name) =>
      readFile(join(root, name)).catch((error: NodeJS.ErrnoException) => {
        throw error.code === "ENOENT" ? notFound(`${name} does not exist`) : error;
      }),
    open: async (name) => {
      const path = join(root, name);
      if (!existsSync(path)) throw notFound(`${name} does not exist`);
      return path;
    },
  };
}

/** The objects of a bucket. */
export function bucketFiles(store: ObjectStore, signal: AbortSignal): LokiFiles {
  const read = (name: string) => store.get(name, { signal });
  return {
    list: async (folder) => {
      const names: string[] = [];
      for await (const { key } of store.list(folder, { signal })) names.push(key);
      return names;
    },
    read,
    open: read,
  };
}

/**
 * Opens chunks. Their names end in `<from>:<through>:<checksum>`, in hexadecimal; a store on a file system has that part in
 * base64, because not all file systems take a colon.
 */
export class ChunkFiles {
  readonly #files: LokiFiles;
  #isEncoded = false;

  constructor(files: LokiFiles) {
    this.#files = files;
  }

  async open(name: string): Promise<Uint8Array | string> {
    // Others are read meanwhile, and may change it.
    const isEncoded = this.#isEncoded;
    try {
      return await this.#files.open(nameIn(name, isEncoded));
    } catch (error) {
      if (errorCodeOf(error) !== "not_found") throw error;
      const found = await this.#files.open(nameIn(name, !isEncoded));
      this.#isEncoded = !isEncoded;
      return found;
    }
  }
}

function nameIn(name: string, isEncoded: boolean): string {
  if (!isEncoded) return name;
  const at = name.lastIndexOf("/") + 1;
  return name.slice(0, at) + Buffer.from(name.slice(at)).toString("base64");
}
