import { dirname, resolve } from "node:path";
import { Semaphore } from "@skald/runtime";
import { type FileHandle, mkdir, open } from "./files.js";

/**
 * The number of syncs that run at a time, beside the sync of the log's open file. Node has four threads for file system
 * calls, and a sync of a slow disk occupies one for seconds: with two here and one there, writes to the log always find a
 * thread.
 */
const maxSyncs = 2;

const turns = new Semaphore(maxSyncs);

/** Runs a sync of a file or a directory in its turn. All syncs that happen again and again while the process runs come here. */
export function syncInTurn(sync: () => Promise<void>): Promise<void> {
  return turns.run(sync);
}

/**
 * Makes the entries of directories survive a power cut. Calls that come while a sync of the same directory runs share the
 * next one: files of a thousand tenants need far fewer syncs of the directory above them.
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
 * Makes a directory and those above it, and makes all of their names last. Otherwise a power cut soon after the first
 * start could take a log whose files were synced.
 */
export async function makeLastingDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  for (let at = dirname(resolve(path)); ; at = dirname(at)) {
    try {
      await syncDirectory(at);
    } catch (error) {
      // Directories above ours may be closed to us, or on a file system that has no such sync.
      const { code = "" } = error as NodeJS.ErrnoException;
      if (!["EACCES", "EPERM", "EINVAL", "EROFS"].includes(code)) throw error;
    }
    if (at === dirname(at)) return;
  }
}

/** Makes the entries of a directory survive a power cut; one that is gone is no error. See `syncInTurn`. */
export async function syncDirectory(path: string): Promise<void> {
  // Windows cannot open a directory, and its renames need no help.
  if (process.platform === "win32") return;
  await withFile(path, "r", (file) => file.sync()).catch((error: unknown) => {
    if (!isAbsent(error)) throw error;
  });
}

/** Opens a file and closes it after its use. */
export async function withFile<T>(
  path: string,
  flags: string,
  use: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

/** Whether an error says that something is not there, or is below something that is no directory. */
export function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}
