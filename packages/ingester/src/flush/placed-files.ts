import { dirname, sep } from "node:path";
import { DirectorySyncs, syncInTurn } from "@skald/storage";
import { open, rename } from "@skald/storage/files";

/** Directories that are synced at a time. */
const maxSyncs = 4;

/** Files that were put in their place below a directory, and whether their names survive a power cut. */
export class PlacedFiles {
  readonly syncs = new DirectorySyncs();
  readonly #dir: string;
  /** Files whose names may be gone after a power cut. */
  #unsynced = new Set<string>();
  /** The last sync that was begun, and the one that will be. */
  #sync = { paths: new Set<string>(), done: Promise.resolve() };
  #nextSync: Promise<void> | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Puts a written file in its place and syncs what is in it; its name survives a power cut from `sync` on. */
  async place(path: string): Promise<void> {
    const temporary = temporaryOf(path);
    const file = await open(temporary, "r");
    try {
      await syncInTurn(() => file.sync());
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    this.note(path);
  }

  /** Remembers that there is a new name in the directory of a file. */
  note(path: string): void {
    this.#unsynced.add(path);
  }

  /**
   * Makes the names of all placed files last: to be done before the log is cut behind them, and before the store has them,
   * as rows that come back from the log must not be in a segment elsewhere. For many tenants at a time: the sync of the first
   * directory writes what the others need too. With a path it waits for that file only.
   */
  sync(path?: string): Promise<void> {
    const { paths, done } = this.#sync;
    const waits = path === undefined ? this.#unsynced.size > 0 : this.#unsynced.has(path);
    if (!waits) return path === undefined || paths.has(path) ? done : Promise.resolve();
    this.#nextSync ??= done.catch(() => undefined).then(() => this.#startSync());
    return this.#nextSync;
  }

  /** The directories of some files, and those above them up to that of all. */
  directoriesOf(paths: Iterable<string>): Set<string> {
    const dirs = new Set<string>();
    for (const path of paths) {
      for (let dir = dirname(path); !dirs.has(dir); dir = dirname(dir)) {
        dirs.add(dir);
        if (dir === this.#dir) break;
      }
    }
    return dirs;
  }

  #startSync(): Promise<void> {
    const paths = this.#unsynced;
    this.#nextSync = undefined;
    this.#unsynced = new Set();
    const done = this.#syncDirectoriesOf(paths).catch((error: unknown) => {
      for (const path of paths) this.#unsynced.add(path);
      throw error;
    });
    this.#sync = { paths, done };
    return done;
  }

  async #syncDirectoriesOf(paths: ReadonlySet<string>): Promise<void> {
    const queue = [...this.directoriesOf(paths)];
    const next = async (): Promise<void> => {
      for (let dir = queue.pop(); dir !== undefined; dir = queue.pop()) await this.syncs.sync(dir);
    };
    await Promise.all(Array.from({ length: maxSyncs }, next));
  }
}

/** The file of a segment is named by its id and this. */
export const segmentSuffix = ".parquet";
const uploadedSuffix = ".uploaded";
const uploadingSuffix = ".uploading";
const temporarySuffix = ".tmp";
const unfinished = /\.parquet(\.tmp)+$/;

/** Where the file of a segment is written until it is placed. */
export function temporaryOf(path: string): string {
  return path + temporarySuffix;
}

/** Whether a path is what a seal that did not end leaves behind. */
export function isUnfinished(path: string): boolean {
  return unfinished.test(path);
}

/** Stands beside a segment that the store has. */
export function markerOf(path: string): string {
  return path.slice(0, -segmentSuffix.length) + uploadedSuffix;
}

/** Stands beside a segment of which an upload was begun. */
export function uploadingMarkerOf(path: string): string {
  return path.slice(0, -segmentSuffix.length) + uploadingSuffix;
}

/** Whether a path is the marker of a segment that is there no more: a process ended between the two when it dropped them. */
export function isStray(path: string, paths: ReadonlySet<string>): boolean {
  const suffix = [uploadedSuffix, uploadingSuffix].find((one) => path.endsWith(one));
  return suffix !== undefined && !paths.has(path.slice(0, -suffix.length) + segmentSuffix);
}

/** The directory of a tenant. Long names are cut into several, because file systems take 255 bytes for each. */
export function tenantDir(tenant: string): string {
  const escaped = encodeURIComponent(tenant).replaceAll(".", "%2E");
  return (escaped.match(/.{1,200}/g) as string[]).join(sep);
}

/** Whose directory it is. */
export function tenantOf(dir: string): string {
  return decodeURIComponent(dir.split(sep).join(""));
}
