import { type Block, type BytesColumn, detectedLevelName } from "@skald/model";
import type { MetadataPairs } from "../head/head-view.js";

/** A block to seal. One that has its metadata row by row gives it so, because columns of many names take much memory. */
export type PairedBlock = Block & { metadataPairs?(): MetadataPairs };

/**
 * The metadata of a block that has no columns, row by row: row r has the pairs `start[r] .. start[r+1])`, none empty, with
 * ascending numbers of names.
 */
export interface MoreRows {
  readonly start: Uint32Array;
  readonly names: Uint32Array;
  /** Value of pair p: `bytes[offsets[p] .. offsets[p+1])`. */
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** In how many rows each name has a value; a name that a row has twice may count twice. */
export function countValues(blocks: readonly PairedBlock[]): Map<string, number> {
  const rows = new Map<string, number>();
  for (const block of blocks) {
    const { names, name, offsets } = pairsOf(block);
    const counts = new Uint32Array(names.length);
    for (let pair = 0; pair < name.length; pair++) {
      if (offsets[pair + 1]! > offsets[pair]!) counts[name[pair]!]!++;
    }
    for (const [i, count] of counts.entries()) {
      const known = rows.get(names[i]!) ?? 0;
      if (count > 0) rows.set(names[i]!, known + count);
    }
  }
  return rows;
}

/** Picks the pairs of names without columns out of blocks, and numbers them all alike. */
export class MoreNumbers {
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(names: readonly string[]) {
    this.#numbers = new Map(names.map((name, number) => [name, number]));
  }

  rowsOf(block: PairedBlock): MoreRows {
    if (!this.#hasAny(block)) return noPairs(block.rowCount);
    const pairs = pairsOf(block);
    const numberOf = Int32Array.from(pairs.names, (name) => this.#numbers.get(name) ?? -1);
    return pick(pairs, numberOf, block.rowCount);
  }

  #hasAny(block: PairedBlock): boolean {
    return (
      this.#numbers.size > 0 &&
      (block.metadataPairs !== undefined ||
        block.metadataNames().some((name) => this.#numbers.has(name)))
    );
  }
}

function noPairs(rowCount: number): MoreRows {
  const none = new Uint32Array(0);
  const bytes = new Uint8Array(0);
  return { start: new Uint32Array(rowCount + 1), names: none, offsets: new Uint32Array(1), bytes };
}

/** The pairs whose names have numbers. */
function pick(pairs: MetadataPairs, numberOf: Int32Array, rowCount: number): MoreRows {
  let count = 0;
  let byteCount = 0;
  for (let pair = 0; pair < pairs.name.length; pair++) {
    if (numberOf[pairs.name[pair]!]! < 0) continue;
    count++;
    byteCount += pairs.offsets[pair + 1]! - pairs.offsets[pair]!;
  }
  const start = new Uint32Array(rowCount + 1);
  const names = new Uint32Array(count);
  const offsets = new Uint32Array(count + 1);
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (let row = 0; row < rowCount; row++) {
    for (const pair of rowPairs(pairs, numberOf, row)) {
      const from = pairs.offsets[pair]!;
      const to = pairs.offsets[pair + 1]!;
      if (from === to) continue;
      bytes.set(pairs.bytes.subarray(from, to), offsets[at]!);
      names[at] = numberOf[pairs.name[pair]!]!;
      at++;
      offsets[at] = offsets[at - 1]! + to - from;
    }
    start[row + 1] = at;
  }
  return { start, names: names.subarray(0, at), offsets: offsets.subarray(0, at + 1), bytes };
}

/** The pairs of a row that have numbers, ascending by them; of a name that it has twice, the last. */
function rowPairs({ start, name }: MetadataPairs, numberOf: Int32Array, row: number): number[] {
  const found: number[] = [];
  for (let pair = start[row]!; pair < start[row + 1]!; pair++) {
    if (numberOf[name[pair]!]! >= 0) found.push(pair);
  }
  if (found.length < 2) return found;
  const number = (pair: number) => numberOf[name[pair]!]!;
  found.sort((a, b) => number(a) - number(b) || a - b);
  return found.filter((pair, i) => {
    const next = found[i + 1];
    return next === undefined || number(next) !== number(pair);
  });
}

function pairsOf(block: PairedBlock): MetadataPairs {
  return block.metadataPairs?.() ?? pairsOfColumns(block);
}

/** For a block that has columns only. */
function pairsOfColumns(block: PairedBlock): MetadataPairs {
  const names = block.metadataNames().filter((name) => name !== detectedLevelName);
  const columns = names.map((name) => block.metadata(name) as BytesColumn);
  const start = new Uint32Array(block.rowCount + 1);
  const name: number[] = [];
  const offsets: number[] = [0];
  const parts: Uint8Array[] = [];
  for (let row = 0; row < block.rowCount; row++) {
    for (const [i, { offsets: ends, bytes }] of columns.entries()) {
      const value = bytes.subarray(ends[row], ends[row + 1]);
      if (value.length === 0) continue;
      name.push(i);
      parts.push(value);
      offsets.push(offsets[offsets.length - 1]! + value.length);
    }
    start[row + 1] = name.length;
  }
  const bytes = new Uint8Array(Buffer.concat(parts));
  return { names, start, name: Uint32Array.from(name), offsets: Uint32Array.from(offsets), bytes };
}
