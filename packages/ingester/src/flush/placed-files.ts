import { dirname, sep } from "node:path";
import { DirectorySyncs, syncInTurn } from "@skald/storage";
import { open, rename } from "@skald/storage/files";

/** Number of directories that are synced at a time. */
const maxSyncs = 4;

/** Places files below a directory, and makes their names survive a power cut. */
export class PlacedFiles {
  readonly syncs = new DirectorySyncs();
  readonly #dir: string;
  /** Files whose names may be gone after a power cut. */
  #unsynced = new Set<string>();
  /** The last sync, and the next one. */
  #sync = { paths: new Set<string>(), done: Promise.resolve() };
  #nextSync: Promise<void> | undefined;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Syncs a written file and renames it to its place. Its name survives a power cut after `sync`. */
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

  /** Notes that the directory of a file has a new name. */
  note(path: string): void {
    this.#unsynced.add(path);
  }

  /**
   * Makes the names of all placed files durable. It must be called before the log is cut behind them and before they are
   * uploaded, because rows that come back from the log must not be in a segment elsewhere. One call serves many tenants:
   * the sync of the first directory writes data of the others too. With a path it waits for that file only.
   */
  sync(path?: string): Promise<void> {
    const { paths, done } = this.#sync;
    const waits = path === undefined ? this.#unsynced.size > 0 : this.#unsynced.has(path);
    if (!waits) return path === undefined || paths.has(path) ? done : Promise.resolve();
    this.#nextSync ??= done.catch(() => undefined).then(() => this.#startSync());
    return this.#nextSync;
  }

  /** The directories of some files, and those above them up to the common one. */
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

/** A segment file is named `<id>.parquet`. */
export const segmentSuffix = ".parquet";
const uploadedSuffix = ".uploaded";
const uploadingSuffix = ".uploading";
const temporarySuffix = ".tmp";
const unfinished = /\.parquet(\.tmp)+$/;

/** The path of a segment file until it is placed. */
export function temporaryOf(path: string): string {
  return path + temporarySuffix;
}

/** Whether a seal that did not end has left this file. */
export function isUnfinished(path: string): boolean {
  return unfinished.test(path);
}

/** The mark of a segment that the store has. */
export function markerOf(path: string): string {
  return path.slice(0, -segmentSuffix.length) + uploadedSuffix;
}

/** The mark of a segment whose upload was begun. */
export function uploadingMarkerOf(path: string): string {
  return path.slice(0, -segmentSuffix.length) + uploadingSuffix;
}

/** Whether a path is the mark of a segment that is gone, because a process ended while it dropped both. */
export function isStray(path: string, paths: ReadonlySet<string>): boolean {
  const suffix = [uploadedSuffix, uploadingSuffix].find((one) => path.endsWith(one));
  return suffix !== undefined && !paths.has(path.slice(0, -suffix.length) + segmentSuffix);
}

/** The directory of a tenant. A long name becomes several levels, because file systems allow 255 bytes for each. */
export function tenantDir(tenant: string): string {
  const escaped = encodeURIComponent(tenant).replaceAll(".", "%2E");
  return (escaped.match(/.{1,200}/g) as string[]).join(sep);
}

/** The tenant of a directory. */
export function tenantOf(dir: string): string {
  return decodeURIComponent(dir.split(sep).join(""));
}
