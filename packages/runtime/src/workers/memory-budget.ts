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
  /** Three words: the pages that all shares hold, the share that may go on when there are none left, and the number of tenants. */
  readonly all: SharedArrayBuffer;
  /** Two words: the same for the shares of its tenant. */
  readonly ofTenant: SharedArrayBuffer;
  /** One word: the pages of this share. */
  readonly own: SharedArrayBuffer;
  readonly maxPages: number;
  /** Whether the job has its thread for itself, so that it may wait there. */
  readonly mayWait: boolean;
}

/** Whose job it is, and whether it has its thread for itself. */
export interface MemoryShareOptions extends Pick<MemoryShareRef, "mayWait"> {
  readonly tenant: string;
}

const total = 0;
const first = 1;
const tenants = 2;
const nobody = 0;
/** The part that several jobs of one tenant may hold while others have jobs. */
const tenantShare = 1 / 2;

/**
 * Bounds what jobs on several threads hold together. When all of it is held, the first that needs more goes on beyond it,
 * so that they never wait for each other, and the rest wait for it. While several tenants have jobs, those of one tenant hold
 * half of it together, beyond which the first of them goes on. A job's share is opened and closed where jobs are given out.
 */
export class MemoryBudget {
  readonly #all = new SharedArrayBuffer(12);
  readonly #words = new Int32Array(this.#all);
  readonly #accounts = new Map<string, Account>();
  readonly #tenantOf = new Map<number, string>();
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

  /** Bytes that the shares of each tenant hold. */
  *holdings(): Generator<{ readonly tenant: string; readonly value: number }> {
    for (const [tenant, { words }] of this.#accounts)
      yield { tenant, value: Atomics.load(words, total) * pageBytes };
  }

  open({ mayWait, tenant }: MemoryShareOptions): MemoryShareRef {
    this.#lastId = this.#lastId === maxId ? 1 : this.#lastId + 1;
    let account = this.#accounts.get(tenant);
    if (account === undefined) {
      account = { shares: 0, words: new Int32Array(new SharedArrayBuffer(8)) };
      this.#accounts.set(tenant, account);
    }
    account.shares++;
    this.#tenantOf.set(this.#lastId, tenant);
    Atomics.store(this.#words, tenants, this.#accounts.size);
    return {
      id: this.#lastId,
      all: this.#all,
      ofTenant: account.words.buffer,
      own: new SharedArrayBuffer(4),
      maxPages: this.#maxPages,
      mayWait,
    };
  }

  /** Gives back all that a share still holds; its thread, if it lives, must not use it any more. */
  close({ id, own }: MemoryShareRef): void {
    const pages = Atomics.exchange(new Int32Array(own), 0, 0);
    this.#leave(id, pages);
    Atomics.sub(this.#words, total, pages);
    Atomics.compareExchange(this.#words, first, id, nobody);
    Atomics.notify(this.#words, total);
  }

  #leave(id: number, pages: number): void {
    const tenant = this.#tenantOf.get(id);
    const account = tenant === undefined ? undefined : this.#accounts.get(tenant);
    if (tenant === undefined || account === undefined) return;
    this.#tenantOf.delete(id);
    Atomics.sub(account.words, total, pages);
    Atomics.compareExchange(account.words, first, id, nobody);
    if (--account.shares === 0) this.#accounts.delete(tenant);
    Atomics.store(this.#words, tenants, this.#accounts.size);
  }
}

interface Account {
  shares: number;
  readonly words: Int32Array<SharedArrayBuffer>;
}

/** The share of a job in a MemoryBudget. */
export class MemoryShare {
  readonly #ref: MemoryShareRef;
  readonly #words: Int32Array;
  readonly #ofTenant: Int32Array;
  readonly #own: Int32Array;
  readonly #shouldStop: () => boolean;
  #bytes = 0;
  #pages = 0;

  constructor(ref: MemoryShareRef, shouldStop: () => boolean = () => false) {
    this.#ref = ref;
    this.#words = new Int32Array(ref.all);
    this.#ofTenant = new Int32Array(ref.ofTenant);
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
      if (!this.#ref.mayWait || waits === maxWaits) throw outOfMemory(this.#ref.maxPages);
      if (this.#shouldStop()) throw cancelledError();
      Atomics.wait(this.#words, total, Atomics.load(this.#words, total), waitMs);
    }
    this.#pages += pages;
    Atomics.add(this.#own, 0, pages);
    Atomics.add(this.#ofTenant, total, pages);
    Atomics.add(this.#words, total, pages);
  }

  /** Counts bytes as no longer held. */
  give(bytes: number): void {
    this.#bytes -= bytes;
    const pages = this.#pages - Math.ceil(this.#bytes / pageBytes);
    if (pages <= 0) return;
    this.#pages -= pages;
    Atomics.sub(this.#own, 0, pages);
    Atomics.sub(this.#ofTenant, total, pages);
    Atomics.sub(this.#words, total, pages);
  }

  #mayHave(pages: number): boolean {
    const { id, maxPages, mayWait } = this.#ref;
    const words = this.#words;
    // The first of all waits for nobody.
    if (Atomics.load(words, first) === id) return true;
    const held = Atomics.load(this.#ofTenant, total) + pages;
    const isShared = mayWait && Atomics.load(words, tenants) > 1;
    if (isShared && held > maxPages * tenantShare && !isFirst(this.#ofTenant, id)) return false;
    if (Atomics.load(words, total) + pages <= maxPages) return true;
    // One that shares its thread must not be in the way of those that wait.
    return mayWait && isFirst(words, id);
  }
}

/** Whether a share is the one that may go on; it becomes that if none is. */
function isFirst(words: Int32Array, id: number): boolean {
  const before = Atomics.compareExchange(words, first, nobody, id);
  return before === nobody || before === id;
}

function outOfMemory(maxPages: number): SkaldError {
  const text = `the queries that run now need the ${maxPages * pageBytes} bytes of memory that queries may take together (querier.max_query_memory); try again later, narrow the query, or raise it`;
  return new SkaldError("rate_limited", text, { retryAfterSeconds });
}

/** Bytes of memory that this process may use: the limit of its container, else the memory of the machine. */
export function memoryBytes(): number {
  const container = process.constrainedMemory?.() ?? 0;
  return container > 0 ? Math.min(container, totalmem()) : totalmem();
}
