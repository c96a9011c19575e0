import { dirname, resolve } from "node:path";
import { Semaphore } from "@skald/runtime";
import { type FileHandle, mkdir, open } from "./files.js";

/**
 * Syncs that run at a time, beside that of the log's open file. Node has four threads for calls of the file system, and a
 * sync of a slow disk holds one for seconds: with two here and one there, writes to the log always find a thread.
 */
const maxSyncs = 2;

const turns = new Semaphore(maxSyncs);

/** Runs a sync of a file or a directory in its turn. Whatever is synced again and again while the process runs goes through here. */
export function syncInTurn(sync: () => Promise<void>): Promise<void> {
  return turns.run(sync);
}

/**
 * Makes the entries of directories survive a power cut. Whoever asks while a sync of the same directory runs shares the
 * next one with all who ask meanwhile: files of a thousand tenants need far fewer syncs of the directory above them.
 */
export class DirectorySyncs {
  readonly #running = new Map<string, Promise<void>>();
  readonly #next = new Map<string, Promise<void>>();

  /** Resolves when what the directory had at the time of the call lasts; a directory that is gone is no error. */
  sync(path: string): Promise<void> {
    const next = this.#next.get(path);
    if (next !== undefined) return next;
    const running = this.#running.get(path);
    if (running === undefined) return this.#start(path);
    const shared = running
      .catch(() => undefined)
      .then(() => {
        this.#next.delete(path);
        return this.#start(path);
      });
    this.#next.set(path, shared);
    return shared;
  }

  /** The same for a directory and those above it up to `top`. */
  async syncUpTo(path: string, top: string): Promise<void> {
    for (let at = path; ; at = dirname(at)) {
      await this.sync(at);
      if (at === top || at === dirname(at)) return;
    }
  }

  #start(path: string): Promise<void> {
    const task = syncInTurn(() => syncDirectory(path)).finally(() => this.#running.delete(path));
    this.#running.set(path, task);
    return task;
  }
}

/**
 * Makes a directory and those above it, and all of their names last: without that a power cut soon after the first start
 * takes a log with it whose files were synced.
 */
export async function makeLastingDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  for (let at = dirname(resolve(path)); ; at = dirname(at)) {
    try {
      await syncDirectory(at);
    } catch (error) {
      // Directories above ours may be closed to us, or on a file system that has no such sync.
      if (
        !["EACCES", "EPERM", "EINVAL", "EROFS"].includes(
          (error as NodeJS.ErrnoException).code ?? "",
        )
      )
        throw error;
    }
    if (at === dirname(at)) return;
  }
}

/** Makes the entries of a directory survive a power cut; one that is gone is no error. See `syncInTurn`. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows cannot open a directory, and its renames need no help.
  if (process.platform === "win32") return;
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return;
    throw error;
  }
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
