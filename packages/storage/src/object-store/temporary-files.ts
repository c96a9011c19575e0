import { randomUUID } from "node:crypto";
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { SkaldError } from "@skald/model";
import { DirectoryLock } from "../directory-lock.js";
import { existsSync, mkdirSync, readdir, rm } from "../files.js";

/** Another process may sweep a folder away in the moment between its making and its lock. */
const maxFolderTries = 10;

/**
 * Where one process writes files before they are moved into place: a folder of its own below `dir`, under a lock that ends
 * with the process, so that others can tell what a dead one left.
 */
export class TemporaryFiles {
  readonly #dir: string;
  #folder: { readonly path: string; readonly lock: DirectoryLock | undefined } | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Deletes what processes left that are gone. Fails when the directory cannot be read. */
  async sweep(): Promise<void> {
    for (const entry of await entriesOf(this.#dir)) {
      if (!uuid.test(entry.name)) continue;
      const path = join(this.#dir, entry.name);
      if (entry.isDirectory()) {
        const lock = take(path);
        // Without locks nobody can tell who is gone.
        if (lock?.isExclusive !== true) continue;
        lock.release();
      }
      await rm(path, { recursive: true, force: true });
    }
  }

  /** A path for a new file; its folder is there. Fails when there is nothing above `dir`. */
  path(): string {
    if (this.#folder === undefined || !existsSync(this.#folder.path)) this.#folder = this.#make();
    return join(this.#folder.path, randomUUID());
  }

  /** Removes the folder; whatever is still in it is unfinished. */
  async close(): Promise<void> {
    const folder = this.#folder;
    this.#folder = undefined;
    if (folder === undefined) return;
    folder.lock?.release();
    await rm(folder.path, { recursive: true, force: true });
  }

  #make() {
    if (!existsSync(this.#dir)) mkdirSync(this.#dir);
    for (let attempt = 1; ; attempt++) {
      const path = join(this.#dir, randomUUID());
      mkdirSync(path);
      const lock = take(path);
      if (existsSync(path) || attempt === maxFolderTries) return { path, lock };
      lock?.release();
    }
  }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Undefined where another process has the lock, or the file system has no locks. */
function take(dir: string): DirectoryLock | undefined {
  try {
    return DirectoryLock.take(dir);
  } catch (error) {
    if (error instanceof SkaldError) return undefined;
    throw error;
  }
}

async function entriesOf(dir: string): Promise<Dirent[]> {
  try {
    return await readdir(dir, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
