import type { RawPush } from "@skald/kernels";
import { type Batch, detectedLevelName, levelInMetadata } from "@skald/model";
import type { MetadataNames } from "./metadata-names.js";

export type BatchMetadata = Pick<
  Batch,
  "metaStart" | "metaName" | "metaValueStart" | "metaValueLength" | "metaNames"
>;

const rowsPerStep = 8192;

/**
 * The metadata columns of a batch: pairs of the rows that are left, under the names that are stored, each row's sorted by
 * name, because rows with the same pairs in another order are equal.
 */
export function* assembleMetadata(
  raw: RawPush,
  names: MetadataNames,
  kept: Uint32Array | undefined,
  levels: Uint8Array,
): Generator<void, BatchMetadata> {
  // Zeros, as many as wanted.
  if (raw.pairCount === 0) return noMetadata(raw.metaStart.subarray(0, levels.length + 1));
  const columns = new PairColumns(raw, names);
  const metaStart = new Uint32Array(levels.length + 1);
  for (let row = 0; row < levels.length; row++) {
    const code = levels[row]!;
    columns.copyRow(kept === undefined ? row : kept[row]!, code !== 0 && code !== levelInMetadata);
    metaStart[row + 1] = columns.count;
    if (row % rowsPerStep === rowsPerStep - 1) yield;
  }
  return { metaStart, ...columns.finish() };
}

const empty = new Uint32Array(0);

function noMetadata(metaStart: Uint32Array): BatchMetadata {
  return {
    metaStart,
    metaName: empty,
    metaValueStart: empty,
    metaValueLength: empty,
    metaNames: [],
  };
}

/** Pairs copied row by row, each row's sorted by name; a name is numbered when its first pair is copied. */
class PairColumns {
  count = 0;
  readonly #raw: RawPush;
  readonly #names: MetadataNames;
  readonly #name: Uint32Array;
  readonly #valueStart: Uint32Array;
  readonly #valueLength: Uint32Array;
  readonly #stored: string[] = [];
  /** By index of `names`: its number plus one, 0 before its first pair. */
  readonly #numberOf: Uint32Array;
  /** By index of `names`, and by number: the place among all names of the push in their order. */
  readonly #rankOf: Uint32Array;
  readonly #ranks: number[] = [];
  /** By place: its number plus one, 0 before its first pair. */
  readonly #numberOfRank: Uint32Array;

  constructor(raw: RawPush, names: MetadataNames) {
    this.#raw = raw;
    this.#names = names;
    const { pairCount } = raw;
    const columns = new ArrayBuffer(12 * pairCount);
    this.#name = new Uint32Array(columns, 0, pairCount);
    this.#valueStart = new Uint32Array(columns, 4 * pairCount, pairCount);
    this.#valueLength = new Uint32Array(columns, 8 * pairCount, pairCount);
    this.#numberOf = new Uint32Array(names.names.length);
    this.#rankOf = ranksOf(names.names);
    this.#numberOfRank = new Uint32Array(names.names.length);
  }

  copyRow(row: number, dropLevel: boolean): void {
    const { metaStart, metaValueStart, metaValueLength, bytes } = this.#raw;
    const first = this.count;
    const end = metaStart[row + 1]!;
    let isSorted = true;
    let rankBefore = -1;
    for (let pair = metaStart[row]!; pair < end; pair++) {
      const length = metaValueLength[pair]!;
      if (length === 0) continue;
      const name = this.#names.ofPair[pair]!;
      if (dropLevel && this.#names.names[name] === detectedLevelName) continue;
      const number = this.#numberOf[name]! > 0 ? this.#numberOf[name]! - 1 : this.#add(name);
      const start = metaValueStart[pair]!;
      if (!isAscii(bytes, start, length)) blankInvalidUtf8(bytes, start, length);
      const rank = this.#ranks[number]!;
      if (rank <= rankBefore) isSorted = false;
      rankBefore = rank;
      this.#put(this.count++, number, start, length);
    }
    if (isSorted) return;
    if (this.count - first > maxInsertedPairs) this.#sortWide(first);
    else this.#sort(first);
  }

  finish(): Omit<BatchMetadata, "metaStart"> {
    return {
      metaName: this.#name.subarray(0, this.count),
      metaValueStart: this.#valueStart.subarray(0, this.count),
      metaValueLength: this.#valueLength.subarray(0, this.count),
      metaNames: this.#stored,
    };
  }

  #put(at: number, number: number, start: number, length: number): void {
    this.#name[at] = number;
    this.#valueStart[at] = start;
    this.#valueLength[at] = length;
  }

  /** Inserts the pairs from `first` on one by one; of a name given twice the last value stays. */
  #sort(first: number): void {
    const end = this.count;
    let count = first;
    for (let pair = first; pair < end; pair++) {
      const number = this.#name[pair]!;
      const start = this.#valueStart[pair]!;
      const length = this.#valueLength[pair]!;
      const rank = this.#ranks[number]!;
      let at = count;
      while (at > first && this.#ranks[this.#name[at - 1]!]! > rank) at--;
      if (at > first && this.#name[at - 1] === number) {
        this.#put(at - 1, number, start, length);
        continue;
      }
      for (let to = count++; to > at; to--) {
        this.#put(to, this.#name[to - 1]!, this.#valueStart[to - 1]!, this.#valueLength[to - 1]!);
      }
      this.#put(at, number, start, length);
    }
    this.count = count;
  }

  /** The same for a row of so many pairs that inserting them would take long. */
  #sortWide(first: number): void {
    const pairs = Array.from({ length: this.count - first }, (_, i) => ({
      number: this.#name[first + i]!,
      start: this.#valueStart[first + i]!,
      length: this.#valueLength[first + i]!,
    }));
    pairs.sort((a, b) => this.#ranks[a.number]! - this.#ranks[b.number]!);
    this.count = first;
    for (const [i, { number, start, length }] of pairs.entries()) {
      if (pairs[i + 1]?.number !== number) this.#put(this.count++, number, start, length);
    }
  }

  #add(name: number): number {
    // Equal names have one place among all.
    const rank = this.#rankOf[name]!;
    let number = this.#numberOfRank[rank]! - 1;
    if (number < 0) {
      number = this.#stored.length;
      this.#stored.push(this.#names.names[name]!);
      this.#numberOfRank[rank] = number + 1;
      this.#ranks.push(rank);
    }
    this.#numberOf[name] = number + 1;
    return number;
  }
}

/** Rows of more pairs are sorted as a whole. */
const maxInsertedPairs = 64;

/** The place of each name when all are sorted; equal names have one place. */
function ranksOf(names: readonly string[]): Uint32Array {
  if (names.length <= maxComparedNames) return comparedRanksOf(names);
  const places = new Map([...new Set(names)].sort().map((name, place) => [name, place]));
  return Uint32Array.from(names, (name) => places.get(name) as number);
}

/** Up to so many names it is faster to compare each with each. */
const maxComparedNames = 12;

function comparedRanksOf(names: readonly string[]): Uint32Array {
  const ranks = new Uint32Array(names.length);
  for (let i = 0; i < names.length; i++) {
    let rank = 0;
    // Names before it count, equal ones once: the last of them does.
    for (let j = 0; j < names.length; j++) {
      if (names[j]! < names[i]! && names.indexOf(names[j]!, j + 1) < 0) rank++;
    }
    ranks[i] = rank;
  }
  return ranks;
}

function isAscii(bytes: Uint8Array, start: number, length: number): boolean {
  let seen = 0;
  for (let i = start; i < start + length; i++) seen |= bytes[i]!;
  return seen < 0x80;
}

/** Overwrites every byte of a range that is no part of valid UTF-8 with a space; the length stays. */
export function blankInvalidUtf8(bytes: Uint8Array, start: number, length: number): void {
  const end = start + length;
  let at = start;
  while (at < end) {
    if (bytes[at]! < 0x80) {
      at++;
      continue;
    }
    const width = sequenceLength(bytes, at, end);
    if (width === 0) bytes[at] = 0x20;
    at += width === 0 ? 1 : width;
  }
}

/** Bytes of the character that begins with the non-ASCII byte at `at`; 0 when it is not valid UTF-8. */
export function sequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at]!;
  const width = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (width === 0 || at + width > end) return 0;
  const second = bytes[at + 1]!;
  const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let i = 2; i < width; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return width;
}
