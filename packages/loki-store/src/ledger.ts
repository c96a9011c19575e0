import { type ObjectStore, tenantPrefix } from "@skald/storage";
import type { ChunkRange } from "./chunk.js";

/** What a segment was made of. */
interface LedgerEntry {
  readonly id: string;
  /** ns since the epoch, in decimal: the range of rows that were taken. */
  readonly fromNs: string;
  readonly toNs: string;
  readonly chunks: readonly string[];
  /** False until the segment is in the store. */
  readonly isDone: boolean;
}

export interface LedgerOptions extends ChunkRange {
  readonly tenant: string;
  /** Start of the day: ns since the epoch. */
  readonly baseNs: bigint;
  readonly signal: AbortSignal;
}

/**
 * The chunks of a tenant's day that were imported, in the store that has their rows: an object for each segment that was made,
 *
 *     index/loki_import/tenant=<tenant>/<start of the day, ns>/<id of the segment>.json
 *
 * It is written before the segment is, without `isDone`, and again behind it.
 */
export class ImportLedger {
  readonly #store: ObjectStore;
  readonly #options: LedgerOptions;
  readonly #folder: string;
  readonly #done = new Set<string>();
  /** What an earlier run began, with the same range, and did not finish. */
  readonly begun: LedgerEntry[] = [];

  private constructor(store: ObjectStore, options: LedgerOptions) {
    this.#store = store;
    this.#options = options;
    this.#folder = `index/loki_import/${tenantPrefix(options.tenant)}${options.baseNs}/`;
  }

  static async open(store: ObjectStore, options: LedgerOptions): Promise<ImportLedger> {
    const ledger = new ImportLedger(store, options);
    const { signal } = options;
    for await (const { key } of store.list(ledger.#folder, { signal }))
      ledger.#take(
        JSON.parse(Buffer.from(await store.get(key, { signal })).toString()) as LedgerEntry,
      );
    return ledger;
  }

  /** Whether all rows of the range that a chunk has are in the store. */
  has(chunk: string): boolean {
    return this.#done.has(chunk);
  }

  begin(id: string, chunks: readonly string[]): Promise<unknown> {
    return this.#write(id, chunks, false);
  }

  finish(id: string, chunks: readonly string[]): Promise<unknown> {
    return this.#write(id, chunks, true);
  }

  #write(id: string, chunks: readonly string[], isDone: boolean): Promise<unknown> {
    const { fromNs, toNs, signal } = this.#options;
    const entry: LedgerEntry = { id, fromNs: String(fromNs), toNs: String(toNs), chunks, isDone };
    return this.#store.put(`${this.#folder}${id}.json`, Buffer.from(JSON.stringify(entry)), {
      signal,
    });
  }

  #take(entry: LedgerEntry): void {
    const [fromNs, toNs] = [BigInt(entry.fromNs), BigInt(entry.toNs)];
    const wanted = this.#options;
    if (entry.isDone) {
      if (fromNs <= wanted.fromNs && toNs >= wanted.toNs)
        for (const chunk of entry.chunks) this.#done.add(chunk);
    } else if (fromNs === wanted.fromNs && toNs === wanted.toNs) this.begun.push(entry);
  }
}
