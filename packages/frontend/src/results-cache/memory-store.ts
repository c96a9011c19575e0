import type { SteadyClock } from "@skald/model";
import type { ResultStore } from "./result-store.js";

export interface MemoryStoreOptions {
  readonly maxBytes: number;
  /** 0: no limit. */
  readonly maxItems: number;
  /** How long a value is kept. */
  readonly ttlMs: number;
  readonly compress: boolean;
  readonly clock: SteadyClock;
}

interface Kept {
  readonly value: Uint8Array;
  readonly untilMs: number;
}

/** What a value takes beside its bytes. */
const itemBytes = 200;
/** A value takes no more than this part of the store. */
const largestPart = 8;

/** Keeps values in memory, those that were not asked for longest go first. */
export class MemoryStore implements ResultStore {
  readonly #options: MemoryStoreOptions;
  /** Those that were asked for last come last. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(options: MemoryStoreOptions) {
    this.#options = options;
  }

  /** Memory of what is kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#kept.size;
  }

  get compress(): boolean {
    return this.#options.compress;
  }

  get maxValueBytes(): number {
    return Math.floor(this.#options.maxBytes / largestPart);
  }

  get(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return Promise.resolve(keys.map((key) => this.#find(key)));
  }

  put(key: string, value: Uint8Array<ArrayBuffer>): void {
    const { clock, maxBytes, maxItems, ttlMs } = this.#options;
    this.#remove(key);
    if (value.byteLength > this.maxValueBytes) return;
    this.#kept.set(key, { value, untilMs: clock.elapsedMs() + ttlMs });
    this.#bytes += itemBytes + value.byteLength;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= maxBytes && (maxItems === 0 || this.#kept.size <= maxItems)) break;
      this.#remove(oldest);
    }
  }

  #find(key: string): Uint8Array | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    if (this.#options.clock.elapsedMs() < kept.untilMs) this.#kept.set(key, kept);
    else this.#bytes -= itemBytes + kept.value.byteLength;
    return this.#kept.get(key)?.value;
  }

  #remove(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#kept.delete(key);
    this.#bytes -= itemBytes + kept.value.byteLength;
  }
}
