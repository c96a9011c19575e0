import { totalmem } from "node:os";
import { SkaldError } from "@skald/model";
import { cancelledError } from "./jobs.js";

/** Bytes are counted in pages of this size, so that threads seldom touch what they share. */
const pageBytes = 64 * 1024;
const retryAfterSeconds = 5;
/** Ids go through a shared 32-bit word. */
const maxId = 2 ** 31 - 1;

/** How long a job waits for memory, and how often it looks whether it is still wanted. */
const maxWaits = 600;
const waitMs = 50;

/** A share as it goes to the thread that uses it. */
export interface MemoryShareRef {
  readonly id: number;
  /** Two words: the pages that all shares hold, and the share that may go on when there are none left. */
  readonly all: SharedArrayBuffer;
  /** One word: the pages of this share. */
  readonly own: SharedArrayBuffer;
  readonly maxPages: number;
  /** Whether the job has its thread for itself, so that it may wait there. */
  readonly mayWait: boolean;
}

const total = 0;
const first = 1;
const nobody = 0;

/**
 * Bounds what jobs on several threads hold together. When all of it is held, the first that needs more goes on beyond it,
 * so that they never wait for each other, and the rest wait for it. A job's share is opened and closed where jobs are
 * given out.
 */
export class MemoryBudget {
  readonly #all = new SharedArrayBuffer(8);
  readonly #words = new Int32Array(this.#all);
  readonly #maxPages: number;
  #lastId = 0;

  constructor(maxBytes: number) {
    this.#maxPages = Math.ceil(maxBytes / pageBytes);
  }

  /** Bytes that all shares hold, rounded up to pages of 64 KiB. */
  get bytes(): number {
    return Atomics.load(this.#words, total) * pageBytes;
  }

  /** True when so much is held that another job had better wait for one to end. */
  get isScarce(): boolean {
    return this.bytes * 2 > this.#maxPages * pageBytes;
  }

  open({ mayWait }: { readonly mayWait: boolean }): MemoryShareRef {
    this.#lastId = this.#lastId === maxId ? 1 : this.#lastId + 1;
    const own = new SharedArrayBuffer(4);
    return { id: this.#lastId, all: this.#all, own, maxPages: this.#maxPages, mayWait };
  }

  /** Gives back all that a share still holds; its thread, if it lives, must not use it any more. */
  close({ id, own }: MemoryShareRef): void {
    const pages = Atomics.exchange(new Int32Array(own), 0, 0);
    Atomics.sub(this.#words, total, pages);
    Atomics.compareExchange(this.#words, first, id, nobody);
    Atomics.notify(this.#words, total);
  }
}

/** The share of a job in a MemoryBudget. */
export class MemoryShare {
  readonly #ref: MemoryShareRef;
  readonly #words: Int32Array;
  readonly #own: Int32Array;
  readonly #shouldStop: () => boolean;
  #bytes = 0;
  #pages = 0;

  constructor(ref: MemoryShareRef, shouldStop: () => boolean = () => false) {
    this.#ref = ref;
    this.#words = new Int32Array(ref.all);
    this.#own = new Int32Array(ref.own);
    this.#shouldStop = shouldStop;
  }

  /**
   * Counts bytes that are about to be held. When all jobs hold too much together it blocks the thread until others have
   * ended, if it may. Throws rate_limited when it may not or that takes too long, `cancelled` when the job shall stop.
   */
  take(bytes: number): void {
    this.#bytes += bytes;
    const pages = Math.ceil(this.#bytes / pageBytes) - this.#pages;
    if (pages <= 0) return;
    for (let waits = 0; !this.#mayHave(pages); waits++) {
      if (!this.#ref.mayWait || waits === maxWaits) throw outOfMemory();
      if (this.#shouldStop()) throw cancelledError();
      Atomics.wait(this.#words, total, Atomics.load(this.#words, total), waitMs);
    }
    this.#pages += pages;
    Atomics.add(this.#own, 0, pages);
    Atomics.add(this.#words, total, pages);
  }

  /** Counts bytes as no longer held. */
  give(bytes: number): void {
    this.#bytes -= bytes;
    const pages = this.#pages - Math.ceil(this.#bytes / pageBytes);
    if (pages <= 0) return;
    this.#pages -= pages;
    Atomics.sub(this.#own, 0, pages);
    Atomics.sub(this.#words, total, pages);
  }

  #mayHave(pages: number): boolean {
    const { id, maxPages, mayWait } = this.#ref;
    if (Atomics.load(this.#words, total) + pages <= maxPages) return true;
    // One that shares its thread must not be in the way of those that wait.
    if (!mayWait) return false;
    const before = Atomics.compareExchange(this.#words, first, nobody, id);
    return before === nobody || before === id;
  }
}

function outOfMemory(): SkaldError {
  const text = "the queries that run now need all memory that queries may take; try again later";
  return new SkaldError("rate_limited", text, { retryAfterSeconds });
}

/** Bytes of memory that this process may use: the limit of its container, else the memory of the machine. */
export function memoryBytes(): number {
  const container = process.constrainedMemory?.() ?? 0;
  return container > 0 ? Math.min(container, totalmem()) : totalmem();
}
