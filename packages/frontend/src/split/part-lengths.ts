import type { QueryStats, ReadStats } from "@skald/model";

/** Bytes of lines that a part reads at least, by estimate: a call costs as much as reading some ten MB. */
export const partBytes = 256 * 1024 * 1024;
/** Queries that are remembered, and letters of the text of one. */
const maxKnown = 1000;
const maxTextLength = 1000;

/** Bytes of lines that a query read. */
export function bytesRead({ ingester, store }: Pick<QueryStats, "ingester" | "store">): number {
  const read = ({ headBytes, decompressedBytes }: ReadStats) => headBytes + decompressedBytes;
  return read(ingester) + read(store);
}

/** How long the parts of metric queries may be: clients ask the same again and again, and a query that reads little is cheaper in one. */
export class PartLengths {
  /** By tenants and text, bytes for each ns of time. */
  readonly #rates = new Map<string, number>();

  /** The length of parts of at least an interval, a multiple of it; both in ns. */
  of(tenants: readonly string[], text: string, intervalNs: bigint): bigint {
    const rate = this.#rates.get(keyOf(tenants, text));
    if (rate === undefined) return intervalNs;
    const count = partBytes / Math.max(1, rate * Number(intervalNs));
    return intervalNs * BigInt(Math.max(1, Math.floor(count)));
  }

  /** From now on parts of a query are an interval long. */
  keepShort(tenants: readonly string[], text: string): void {
    this.#set(keyOf(tenants, text), Number.POSITIVE_INFINITY);
  }

  /** Notes what was read for an answer of which nothing was known before. */
  note(tenants: readonly string[], text: string, lengthNs: bigint, stats: QueryStats): void {
    if ((stats.caches?.result?.entriesFound ?? 0) > 0 || lengthNs <= 0n) return;
    const key = keyOf(tenants, text);
    if (this.#rates.get(key) === Number.POSITIVE_INFINITY) return;
    if (text.length <= maxTextLength) this.#set(key, bytesRead(stats) / Number(lengthNs));
  }

  #set(key: string, rate: number): void {
    this.#rates.delete(key);
    const [oldest] = this.#rates.keys();
    if (this.#rates.size >= maxKnown && oldest !== undefined) this.#rates.delete(oldest);
    this.#rates.set(key, rate);
  }
}

function keyOf(tenants: readonly string[], text: string): string {
  return JSON.stringify([tenants, text]);
}
