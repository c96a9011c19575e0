import { createHash } from "node:crypto";
import { join } from "node:path";
import { type Clock, notFound, systemClock, unavailable } from "@skald/model";
import { Semaphore } from "@skald/runtime";
import { mkdir, rm, statfs } from "../files.js";
import type { CallOptions, ObjectStore } from "../object-store/object-store.js";
import {
  type CacheFile,
  createCacheFile,
  type FoundFile,
  findCacheFiles,
  openCacheFile,
} from "./cache-file.js";
import { type CachedObject, type SlotRange, slotBytes } from "./cached-segment.js";

export interface SegmentCacheOptions {
  readonly directory: string;
  /** Which store it is: keys of another one are other objects. */
  readonly storeName: string;
  readonly maxBytes: number;
  readonly store: Pick<ObjectStore, "getRange" | "list">;
  /** Called for each file that was deleted: threads may have it open. */
  readonly onDropped?: (path: string) => void;
  readonly clock?: Clock;
  /** Size and free space of the cache's disk. */
  readonly disk?: () => Promise<{ readonly freeBytes: number; readonly totalBytes: number }>;
}

/** What a call fetched. */
export interface Fetched {
  readonly requests: number;
  readonly slots: number;
  readonly bytes: number;
}

/** Objects that stay in the cache until they are released, in the order in which they were asked for. */
export interface HeldObjects {
  readonly objects: readonly CachedObject[];
  release(): void;
}

/** What scans need of the cache, which may be on another thread. */
export type SegmentCacheCalls = Pick<SegmentCache, "hold" | "fetch" | "drop">;

/** Makes the cache forget what the store has no more. */
export type SegmentCacheCleaner = Pick<SegmentCache, "drop" | "dropGone">;

/** Fetching this much for nothing costs less than another request. */
const maxGapSlots = 4;
/** Larger ranges are fetched in pieces side by side: one connection has little of the bandwidth. */
const maxPieceSlots = 64;
/** Requests under way, of all queries: at most 64 MiB in memory. */
const requestsTogether = 16;
/** The cache leaves this share of the disk free: pushed data is on it too, and cannot be fetched again. */
const reservedShare = 0.05;
/** The file of a used object is marked as used this often. */
const touchMs = 60_000;

/** An object of the store, as listings tell of it. */
export type ObjectName = Pick<CachedObject, "key" | "sizeBytes">;

interface Entry {
  readonly hash: string;
  readonly file: Promise<CacheFile>;
  /** Set once the file is there. */
  opened: CacheFile | undefined;
  heldBytes: number;
  users: number;
  touchedMs: number;
}

/**
 * Ranges of the store's objects in files of this machine, bounded in bytes: what was used least recently goes first, as a
 * whole. It outlives the process. Segments never change, so nothing here is ever stale; their own checksums tell what the
 * disk did not keep.
 */
export class SegmentCache {
  readonly #options: SegmentCacheOptions;
  readonly #clock: Clock;
  /** The least recently used first. */
  readonly #entries = new Map<string, Entry>();
  /** Files of earlier processes that were not asked for yet, the least recently used first. */
  readonly #found = new Map<string, FoundFile & { readonly heldBytes: number }>();
  readonly #flights = new Flights();
  readonly #requests = new Semaphore(requestsTogether);
  #bytes = 0;
  #trimming: Promise<void> = Promise.resolve();

  constructor(options: SegmentCacheOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Bytes of slots that are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Finds what earlier processes left. Throws unavailable when the directory cannot be used; may be called again then. */
  async open(): Promise<void> {
    try {
      await mkdir(this.#options.directory, { recursive: true });
      await this.#findFiles();
    } catch (error) {
      throw this.#broken(error);
    }
  }

  async #findFiles(): Promise<void> {
    const files = await findCacheFiles(this.#options.directory);
    this.#found.clear();
    this.#bytes = 0;
    for (const file of files.sort((a, b) => a.usedMs - b.usedMs)) {
      // What is in another store is not cleaned up here, and would stay for ever.
      if (file.hash !== this.#hashOf(file.key)) {
        await rm(file.path, { force: true });
        continue;
      }
      const older = this.#found.get(file.hash);
      if (older !== undefined) await this.#forgetFound(older);
      this.#found.set(file.hash, file);
      this.#bytes += file.heldBytes;
    }
    await this.#trim();
  }

  async close(): Promise<void> {
    this.#flights.close();
    await this.#trimming;
    const entries = [...this.#entries.values()];
    await Promise.allSettled(entries.map(({ opened }) => opened?.close()));
  }

  /** Keeps objects, with what was fetched of them, in the cache until the result is released. */
  async hold(wanted: readonly ObjectName[]): Promise<HeldObjects> {
    const held = wanted.map((object) => this.#entryOf(object));
    for (const entry of held) entry.users++;
    const release = once(() => {
      for (const entry of held) this.#release(entry);
    });
    try {
      const files = await Promise.all(held.map(({ file }) => file));
      for (const [i, file] of files.entries()) this.#touch(held[i] as Entry, file);
      return { objects: files.map(({ object }) => object), release };
    } catch (error) {
      release();
      throw this.#broken(error);
    }
  }

  /** Fetches slots of objects that are held, near ones together; those that are under way for others are waited for. */
  async fetch(ranges: readonly SlotRange[], signal: AbortSignal): Promise<Fetched> {
    const pieces = ranges.flatMap((range) => this.#piecesOf(range));
    const fetched = { requests: 0, slots: 0, bytes: 0 };
    await Promise.all(
      joined(pieces).map((piece) =>
        this.#flights.join(`${piece.key} ${piece.from}`, piece.to, signal, async (stop) => {
          const bytes = await this.#requests.run(() => this.#fetchPiece(piece, stop), stop);
          fetched.requests++;
          fetched.slots += piece.to - piece.from;
          fetched.bytes += bytes;
        }),
      ),
    );
    if (fetched.slots > 0) await this.#trim();
    return fetched;
  }

  /** Drops what is held of objects below a prefix that the store has no more. */
  async dropGone(prefix: string, { signal }: CallOptions): Promise<void> {
    const left = [...this.#found.values()].map(({ key }) => key);
    const keys = [...this.#entries.keys(), ...left].filter((key) => key.startsWith(prefix));
    const byFolder = new Map<string, Set<string>>();
    for (const key of keys) {
      const folder = key.slice(0, key.lastIndexOf("/") + 1);
      byFolder.set(folder, (byFolder.get(folder) ?? new Set()).add(key));
    }
    for (const [folder, gone] of byFolder) {
      for await (const { key } of this.#options.store.list(folder, { signal })) gone.delete(key);
      for (const key of gone) await this.drop(key);
    }
  }

  /** Drops what is held of an object: it is not what the store has, or the store has it no more. */
  async drop(key: string): Promise<void> {
    const hash = this.#hashOf(key);
    const left = this.#found.get(hash);
    this.#found.delete(hash);
    if (left !== undefined) await this.#forgetFound(left);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    await this.#remove(entry);
  }

  #entryOf({ key, sizeBytes }: ObjectName): Entry {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known;
    }
    const hash = this.#hashOf(key);
    const left = this.#found.get(hash);
    this.#found.delete(hash);
    const file = this.#openFile(hash, left, { key, sizeBytes });
    const entry: Entry = {
      ...{ hash, file, opened: undefined, users: 0, touchedMs: 0 },
      heldBytes: 0,
    };
    file.then(
      (opened) => {
        entry.opened = opened;
        entry.heldBytes = opened.heldSlots * slotBytes;
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    this.#entries.set(key, entry);
    return entry;
  }

  async #openFile(
    hash: string,
    left: (FoundFile & { readonly heldBytes: number }) | undefined,
    object: ObjectName,
  ): Promise<CacheFile> {
    if (left !== undefined) {
      const opened = await openCacheFile(left.path, object).catch(() => undefined);
      if (opened !== undefined) return opened;
      await this.#forgetFound(left);
    }
    return createCacheFile(this.#options.directory, hash, object);
  }

  #touch(entry: Entry, file: CacheFile): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs - entry.touchedMs < touchMs) return;
    entry.touchedMs = nowMs;
    // Only the order in which a later process forgets things depends on it.
    file.touch(nowMs).catch(() => {});
  }

  #release(entry: Entry): void {
    entry.users--;
    if (entry.users > 0) return;
    entry.opened?.close().catch(() => {});
    // While it was in use it could not go.
    if (this.#bytes <= this.#options.maxBytes) return;
    this.#trimming = this.#trimming.then(() => this.#trim()).catch(() => {});
  }

  /** The parts of a range that are missing, in pieces that are fetched at once. */
  #piecesOf({ key, from, to }: SlotRange): SlotRange[] {
    const file = this.#entries.get(key)?.opened;
    if (file === undefined) throw notHeld(key);
    const end = Math.min(to, file.slotCount);
    const pieces: SlotRange[] = [];
    for (let slot = from; slot < end; slot++) {
      if (!file.has(slot)) pieces.push({ key, from: slot, to: slot + 1 });
    }
    return pieces;
  }

  async #fetchPiece({ key, from, to }: SlotRange, signal: AbortSignal): Promise<number> {
    const entry = this.#entries.get(key);
    const file = entry?.opened;
    if (entry === undefined || file === undefined) throw notHeld(key);
    const offset = from * slotBytes;
    const length = Math.min(to * slotBytes, file.object.sizeBytes) - offset;
    const bytes = await this.#options.store.getRange(key, { offset, length }, { signal });
    const added = (await this.#write(file, from, bytes)) * slotBytes;
    entry.heldBytes += added;
    this.#bytes += added;
    return length;
  }

  /** When the disk is full, drops unused objects and tries again. */
  async #write(file: CacheFile, slot: number, bytes: Uint8Array): Promise<number> {
    try {
      return await file.write(slot, bytes);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw this.#broken(error);
      await this.#trim(0);
      return file.write(slot, bytes).catch((again: unknown) => {
        throw this.#broken(again);
      });
    }
  }

  /** The configured bound, or less when the disk has to keep some space free. */
  async #limit(): Promise<number> {
    const { maxBytes, directory, disk = () => diskOf(directory) } = this.#options;
    const { freeBytes, totalBytes } = await disk();
    return Math.min(maxBytes, this.#bytes + freeBytes - totalBytes * reservedShare);
  }

  async #trim(most?: number): Promise<void> {
    const maxBytes = most ?? (await this.#limit());
    for (const found of [...this.#found.values()]) {
      if (this.#bytes <= maxBytes) return;
      this.#found.delete(found.hash);
      await this.#forgetFound(found);
    }
    for (const [key, entry] of [...this.#entries]) {
      if (this.#bytes <= maxBytes) return;
      if (entry.users > 0) continue;
      this.#entries.delete(key);
      await this.#remove(entry);
    }
  }

  async #forgetFound(found: FoundFile & { readonly heldBytes: number }): Promise<void> {
    this.#bytes -= found.heldBytes;
    await rm(found.path, { force: true });
  }

  async #remove(entry: Entry): Promise<void> {
    this.#bytes -= entry.heldBytes;
    entry.heldBytes = 0;
    const file = await entry.file;
    await file.remove();
    this.#options.onDropped?.(file.object.path);
  }

  #hashOf(key: string): string {
    const name = JSON.stringify([this.#options.storeName, key]);
    return createHash("sha256").update(name).digest("hex").slice(0, 32);
  }

  #broken(error: unknown): unknown {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) return error;
    const where = join(this.#options.directory, ".");
    return unavailable(`the cache of segments in ${where} cannot be used: ${message}`, {
      cause: error,
    });
  }
}

/** Ranges of single slots, ascending by object, as few ranges: near ones joined, none too large. */
function joined(slots: readonly SlotRange[]): SlotRange[] {
  const ranges: { key: string; from: number; to: number }[] = [];
  const sorted = [...slots].sort((a, b) =>
    a.key === b.key ? a.from - b.from : a.key < b.key ? -1 : 1,
  );
  for (const { key, from, to } of sorted) {
    const last = ranges.at(-1);
    const isNear = last?.key === key && from - last.to <= maxGapSlots;
    if (last !== undefined && isNear && to - last.from <= maxPieceSlots) {
      last.to = Math.max(last.to, to);
    } else ranges.push({ key, from, to });
  }
  return ranges;
}

/** The object was dropped as damaged while another query used it; a new search finds it again. */
function notHeld(key: string) {
  return notFound(`object ${key} is not in the cache any more`);
}

async function diskOf(directory: string) {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    act();
  };
}

interface Flight {
  readonly to: number;
  readonly done: Promise<void>;
  readonly abort: AbortController;
  waiting: number;
}

/**
 * Fetches that are under way, by where they begin. A call that a running fetch covers waits for it; a fetch is given up
 * when no call waits for it any more.
 */
class Flights {
  readonly #flights = new Map<string, Flight>();

  /** Waits until everything up to `to` was fetched; rejects with the signal's reason as soon as that is aborted. */
  async join(
    place: string,
    to: number,
    signal: AbortSignal,
    fetch: (stop: AbortSignal) => Promise<void>,
  ): Promise<void> {
    signal.throwIfAborted();
    const known = this.#flights.get(place);
    const flight = known !== undefined && known.to >= to ? known : this.#start(place, to, fetch);
    flight.waiting++;
    let onAbort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
    });
    try {
      await Promise.race([flight.done, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      flight.waiting--;
      if (flight.waiting === 0) this.#giveUp(place, flight);
    }
  }

  close(): void {
    for (const { abort } of this.#flights.values()) abort.abort();
  }

  #giveUp(place: string, flight: Flight): void {
    if (this.#flights.get(place) === flight) this.#flights.delete(place);
    flight.abort.abort();
  }

  #start(place: string, to: number, fetch: (stop: AbortSignal) => Promise<void>): Flight {
    const abort = new AbortController();
    const done = fetch(abort.signal).finally(() => {
      if (this.#flights.get(place) === flight) this.#flights.delete(place);
    });
    // Callers that wait get the error; without any it does not matter.
    done.catch(() => {});
    const flight: Flight = { to, done, abort, waiting: 0 };
    this.#flights.set(place, flight);
    return flight;
  }
}
