import { SkaldError } from "@skald/model";

/** Bytes are counted in pages of this size, so that threads seldom touch what they share. */
const pageBytes = 64 * 1024;
const retryAfterSeconds = 5;

/** A share as it goes to the thread that uses it. */
export interface MemoryShareRef {
  /** One word each: the pages that all shares hold, and those of this one. */
  readonly total: SharedArrayBuffer;
  readonly own: SharedArrayBuffer;
  readonly maxPages: number;
}

/** Bounds what jobs on several threads hold together. A job's share is opened and closed where jobs are given out. */
export class MemoryBudget {
  readonly #total = new SharedArrayBuffer(4);
  readonly #maxPages: number;

  constructor(maxBytes: number) {
    this.#maxPages = Math.ceil(maxBytes / pageBytes);
  }

  /** Bytes that all shares hold, rounded up to pages of 64 KiB. */
  get bytes(): number {
    return Atomics.load(new Int32Array(this.#total), 0) * pageBytes;
  }

  /** True when so much is held that another job had better wait for one to end. */
  get isScarce(): boolean {
    return this.bytes * 2 > this.#maxPages * pageBytes;
  }

  open(): MemoryShareRef {
    return { total: this.#total, own: new SharedArrayBuffer(4), maxPages: this.#maxPages };
  }

  /** Gives back all that a share still holds; its thread, if it lives, must not use it any more. */
  close({ own }: MemoryShareRef): void {
    const pages = Atomics.exchange(new Int32Array(own), 0, 0);
    Atomics.sub(new Int32Array(this.#total), 0, pages);
  }
}

/** What a job holds of a MemoryBudget. */
export class MemoryShare {
  readonly #total: Int32Array;
  readonly #own: Int32Array;
  readonly #maxPages: number;
  #bytes = 0;
  #pages = 0;

  constructor({ total, own, maxPages }: MemoryShareRef) {
    this.#total = new Int32Array(total);
    this.#own = new Int32Array(own);
    this.#maxPages = maxPages;
  }

  /** Counts bytes that are about to be held. Throws rate_limited when all jobs hold too much together. */
  take(bytes: number): void {
    this.#bytes += bytes;
    const pages = Math.ceil(this.#bytes / pageBytes) - this.#pages;
    if (pages <= 0) return;
    this.#pages += pages;
    Atomics.add(this.#own, 0, pages);
    const before = Atomics.add(this.#total, 0, pages);
    if (before + pages > this.#maxPages) throw outOfMemory();
  }

  /** Counts bytes as no longer held. */
  give(bytes: number): void {
    this.#bytes -= bytes;
    const pages = this.#pages - Math.ceil(this.#bytes / pageBytes);
    if (pages <= 0) return;
    this.#pages -= pages;
    Atomics.sub(this.#own, 0, pages);
    Atomics.sub(this.#total, 0, pages);
  }
}

function outOfMemory(): SkaldError {
  const text = "the queries that run now need all memory that queries may take; try again later";
  return new SkaldError("rate_limited", text, { retryAfterSeconds });
}
