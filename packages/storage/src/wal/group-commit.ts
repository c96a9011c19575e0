import { type SkaldError, type SteadyClock, steadyClock } from "@skald/model";
import { Semaphore, type Sleep, sleep } from "@skald/runtime";
import { syncInTurn } from "../syncs.js";
import { type WalDisk, type WalDiskFile, walPath } from "./disk.js";

export interface GroupCommitOptions {
  readonly dir: string;
  /** When a push is answered: after the sync, or after the write with a sync every interval, or with none. */
  readonly fsync: "always" | "interval" | "never";
  readonly fsyncIntervalMs: number;
  readonly disk: WalDisk;
  /** Called for each failed write or sync, to log it. */
  readonly onError: (error: unknown) => void;
  /** Called for a failure before the lost writes reject; returns the error that they reject with. */
  readonly onLost: (error: unknown) => SkaldError;
  /** Called with the number of good bytes of a file: 0 when it is made, then after each write. */
  readonly onSize: (file: number, bytes: number) => void;
  /** Called for a file whose sync failed after its writes were answered: a power cut may take any part of it. */
  readonly onUnsynced: (file: number) => void;
  /** Called with the time from the oldest write of a group to its answer, and with the time that a sync took. */
  readonly onTimed?: (what: "write" | "sync", ms: number) => void;
  readonly clock?: SteadyClock;
  readonly sleep?: Sleep;
}

/** What is written as a whole or not at all. */
interface WalWrite {
  readonly file: number;
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
  /** Makes the write fail when its turn comes. */
  readonly error?: unknown;
  /** Called when it is written, before the promise resolves. */
  readonly onWritten: () => void;
}

/**
 * Writes to the files of the log in the order of the calls: what comes in one turn of the event loop goes out in one
 * write, and one sync serves all of it. A failed write fails everything that waits and is cut off its file, so that the
 * disk always has a prefix of what was written.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #clock: SteadyClock;
  readonly #abort = new AbortController();
  readonly #background = new Set<Promise<void>>();
  /** Files that are being synced and closed behind the open one. */
  readonly #retiring = new Set<Promise<void>>();
  /** Held by a sync of the open file, so that there is one at a time. */
  readonly #openTurn = new Semaphore(1);
  readonly #counts = { writes: 0, syncs: 0, failures: 0 };
  /** When the syncs that run were begun, the oldest first. */
  readonly #syncsSince = new Set<{ readonly ms: number }>();
  /** One group is written at a time. */
  readonly #gather = Buffer.allocUnsafeSlow(gatherBytes);
  #queue: Entry[] = [];
  #queuedBytes = 0;
  #pump: Promise<void> | undefined;
  #open: OpenFile | undefined;
  #syncPlanned = false;
  #closed = false;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#clock = options.clock ?? steadyClock;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  get counts(): { readonly writes: number; readonly syncs: number; readonly failures: number } {
    return this.#counts;
  }

  /** How long the oldest of the syncs that run has taken by now, with its wait for a turn; 0 when none runs. */
  get syncingMs(): number {
    const [oldest] = this.#syncsSince;
    return oldest === undefined ? 0 : this.#clock.elapsedMs() - oldest.ms;
  }

  /** Resolves when it is written, rejects with what `onLost` returned. Files come in ascending order. */
  write(write: WalWrite): Promise<void> {
    this.#queuedBytes += write.bytes;
    const written = new Promise<void>((resolve, reject) => {
      this.#queue.push({ ...write, sinceMs: this.#clock.elapsedMs(), resolve, reject });
    });
    this.#pump ??= this.#writeQueue();
    return written;
  }

  /** Syncs all that is written so far, unless syncs are left to the system. */
  async sync(): Promise<void> {
    if (this.#options.fsync === "never") return;
    const open = this.#open;
    await Promise.all([
      ...this.#retiring,
      open === undefined ? undefined : this.#syncAnswered(open),
    ]);
  }

  /** Closes the open file if nothing waits and it comes before `file`, so that it can be removed. */
  async closeBefore(file: number): Promise<void> {
    const last = this.#open;
    if (last === undefined || last.number >= file || this.#pump !== undefined) return;
    this.#open = undefined;
    await this.#retire(last);
  }

  /** Writes and syncs what waits, then closes. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#pump;
    this.#abort.abort();
    if (this.#open !== undefined) await this.#retire(this.#open);
    this.#open = undefined;
    await Promise.all(this.#background);
  }

  /** Writes groups until the queue is empty. Waits one turn first, so that pushes that came together share a write. */
  async #writeQueue(): Promise<void> {
    await nextTurn();
    while (this.#queue.length > 0) {
      const group = takeGroup(this.#queue);
      try {
        await this.#writeGroup(group);
      } catch (error) {
        await this.#fail(error, group);
        continue;
      }
      for (const entry of group) {
        this.#queuedBytes -= entry.bytes;
        entry.onWritten();
        entry.resolve();
      }
      this.#options.onTimed?.("write", this.#clock.elapsedMs() - group[0]!.sinceMs);
    }
    this.#pump = undefined;
  }

  async #writeGroup(group: readonly Entry[]): Promise<void> {
    for (const { error } of group) if (error !== undefined) throw error;
    const file = await this.#openFile(group[0]!.file);
    let parts = this.#gathered(group);
    while (parts.length > 0) {
      const taken = await file.handle.writev(parts.slice(0, maxPartsPerWrite));
      if (taken === 0) throw new Error("the disk took no bytes");
      file.pendingBytes += taken;
      parts = skipBytes(parts, taken);
    }
    this.#counts.writes++;
    if (this.#options.fsync === "always") await this.#sync(file);
    file.goodBytes = file.pendingBytes;
    this.#options.onSize(file.number, file.goodBytes);
    if (this.#options.fsync === "interval") this.#syncLater();
  }

  /** The parts of a group in few pieces: copying a small part costs less than handing it to the system by itself. */
  #gathered(group: readonly Entry[]): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    const room = this.#gather;
    let from = 0;
    let to = 0;
    for (const { parts } of group) {
      for (const part of parts) {
        if (part.byteLength <= maxGatheredBytes && to + part.byteLength <= room.length) {
          room.set(part, to);
          to += part.byteLength;
          continue;
        }
        if (to > from) pieces.push(room.subarray(from, to));
        from = to;
        pieces.push(part);
      }
    }
    if (to > from) pieces.push(room.subarray(from, to));
    return pieces;
  }

  async #openFile(number: number): Promise<OpenFile> {
    const { disk, dir, onSize } = this.#options;
    const last = this.#open;
    if (last?.number === number) return last;
    this.#open = undefined;
    if (last !== undefined) {
      const retiring = this.#retire(last).finally(() => this.#retiring.delete(retiring));
      this.#retiring.add(retiring);
      this.#own(retiring);
    }
    const handle = await disk.create(walPath(dir, number));
    const file = { number, handle, goodBytes: 0, pendingBytes: 0, syncedBytes: 0, isNamed: false };
    this.#open = file;
    onSize(number, 0);
    return file;
  }

  /** Gives up all waiting writes: the owner learns first, and their bytes are cut off the file so that no replay finds them. */
  async #fail(error: unknown, group: readonly Entry[]): Promise<void> {
    this.#counts.failures++;
    const lost = [...group, ...this.#queue.splice(0)];
    for (const entry of lost) this.#queuedBytes -= entry.bytes;
    const refusal = this.#options.onLost(error);
    this.#options.onError(error);
    for (const entry of lost) entry.reject(refusal);
    const file = this.#open;
    this.#open = undefined;
    if (file === undefined) return;
    try {
      await file.handle.truncate(file.goodBytes);
      await this.#retire(file);
    } catch (repairError) {
      this.#options.onError(repairError);
    }
  }

  /**
   * Syncs what will be the open file, until it has no writes that are not synced: one that is full by then was synced when
   * it was closed. The next sync is planned when the last one has ended, however long that takes.
   */
  #syncLater(): void {
    if (this.#syncPlanned) return;
    this.#syncPlanned = true;
    const wait = (this.#options.sleep ?? sleep)(this.#options.fsyncIntervalMs, this.#abort.signal);
    this.#own(
      wait.then(
        async () => {
          try {
            if (this.#open !== undefined) await this.#syncAnswered(this.#open);
          } finally {
            this.#syncPlanned = false;
          }
          const open = this.#open;
          if (open !== undefined && open.goodBytes > open.syncedBytes) this.#syncLater();
        },
        () => undefined,
      ),
    );
  }

  /** Syncs what is written of a file by now, one sync of it at a time: calls that come while one runs share the next. */
  #sync(file: OpenFile): Promise<void> {
    file.nextSync ??= (file.sync ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => {
        file.sync = this.#startSync(file);
        file.nextSync = undefined;
        return file.sync;
      });
    return file.nextSync;
  }

  async #startSync(file: OpenFile): Promise<void> {
    const { disk, dir, onTimed } = this.#options;
    const since = { ms: this.#clock.elapsedMs() };
    this.#syncsSince.add(since);
    const bytes = file.pendingBytes;
    const sync = async (): Promise<void> => {
      if (!file.isNamed) await disk.syncDir(dir);
      file.isNamed = true;
      await file.handle.datasync();
    };
    // Writes that wait for a sync do not wait for those of other files first.
    try {
      await (file === this.#open ? this.#openTurn.run(sync) : syncInTurn(sync));
    } finally {
      this.#syncsSince.delete(since);
    }
    file.syncedBytes = bytes;
    this.#counts.syncs++;
    onTimed?.("sync", this.#clock.elapsedMs() - since.ms);
  }

  /** Syncs writes that were answered already, so a failure cannot refuse them any more. */
  async #syncAnswered(file: OpenFile): Promise<void> {
    try {
      await this.#sync(file);
    } catch (error) {
      this.#options.onUnsynced(file.number);
      throw error;
    }
  }

  /** Syncs a file that gets no more records and closes it. */
  async #retire(file: OpenFile): Promise<void> {
    try {
      if (this.#options.fsync !== "never" || this.#closed) await this.#syncAnswered(file);
    } finally {
      await file.handle.close();
    }
  }

  /** Keeps a background task until it ends, and reports its failure. */
  #own(task: Promise<void>): void {
    const owned = task
      .catch((error: unknown) => {
        this.#counts.failures++;
        this.#options.onError(error);
      })
      .finally(() => this.#background.delete(owned));
    this.#background.add(owned);
  }
}

interface Entry extends WalWrite {
  /** When it was asked for. */
  readonly sinceMs: number;
  readonly resolve: () => void;
  readonly reject: (error: SkaldError) => void;
}

interface OpenFile {
  readonly number: number;
  readonly handle: WalDiskFile;
  /** Bytes of records whose writes were answered. */
  goodBytes: number;
  pendingBytes: number;
  syncedBytes: number;
  /** Whether its name survives a power cut; its first sync sees to that. */
  isNamed: boolean;
  /** The last sync that was begun, and the one that follows it. */
  sync?: Promise<void> | undefined;
  nextSync?: Promise<void> | undefined;
}

/** Parts up to this size are copied together, as long as there is room for them. */
const maxGatheredBytes = 64 * 1024;
const gatherBytes = 1024 * 1024;

/** What the kernel takes in one call. */
const maxPartsPerWrite = 1024;
const maxGroupBytes = 16 * 1024 * 1024;

/**
 * Takes entries of one file off the queue: at least one, then as many as go into one write. One that must fail begins a
 * group, so that those before it are written.
 */
function takeGroup(queue: Entry[]): Entry[] {
  const { file } = queue[0]!;
  let count = 0;
  let bytes = 0;
  let parts = 0;
  for (const entry of queue) {
    bytes += entry.bytes;
    parts += entry.parts.length;
    const full = bytes > maxGroupBytes || parts > maxPartsPerWrite;
    const ends = entry.file !== file || entry.error !== undefined || full;
    if (ends && count > 0) break;
    count++;
  }
  return queue.splice(0, count);
}

/** The parts without their first bytes. */
function skipBytes(parts: readonly Uint8Array[], count: number): Uint8Array[] {
  let skipped = 0;
  for (const [i, part] of parts.entries()) {
    if (skipped + part.byteLength > count) {
      return [part.subarray(count - skipped), ...parts.slice(i + 1)];
    }
    skipped += part.byteLength;
  }
  return [];
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
