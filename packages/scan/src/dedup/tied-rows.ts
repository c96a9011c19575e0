import { crc32 } from "node:zlib";
import { type Block, type BytesColumn, lowerBound, type MetadataColumn } from "@skald/model";
import { minuteNs } from "@skald/storage";
import type { FoundRows } from "../source/row-mask.js";
import type { Source } from "../source/source.js";

/** A source among others that it is compared with. */
export interface ComparedSource {
  readonly source: Source;
  /** Its number in order of arrival. */
  readonly place: number;
  /** Whether its rows are wanted. */
  readonly isWanted: boolean;
  /** Its rows that an earlier source has too. */
  readonly found: FoundRows;
}

/** Rows of one stream, next to each other in one block of a source. */
export interface SharedRun {
  readonly of: ComparedSource;
  readonly stream: number;
  readonly block: number;
  /** Row numbers [from, to). */
  readonly from: number;
  readonly to: number;
  /** ns since the base, inclusive */
  readonly minTime: number;
  readonly maxTime: number;
  /** Minutes of the day whose rows are all named already. */
  named: ReadonlySet<number> | undefined;
}

/** Minutes of the day whose rows have to be compared; "all" where digests do not tell. */
export type OpenMinutes = ReadonlySet<number> | "all";

/** The first and the last time of some rows, inclusive, in ns since a base. */
export interface Times {
  readonly from: number;
  readonly to: number;
}

interface TieContext {
  readonly rows: StretchRows;
  readonly blocks: SharedBlocks;
  readonly check: () => void;
  /** Rows outside these times are not compared. */
  readonly bounds?: Times | undefined;
}

/** Rows of equal time are compared pair by pair up to this many pairs; more are grouped by a hash first. */
const maxPairs = 64;
/** Rows between two checks for cancellation. */
const rowsPerCheck = 4096;

/** Names the rows of one stream that an earlier source has too, where runs of two sources overlap in open minutes. */
export function compareTied(runs: SharedRun[], open: OpenMinutes, context: TieContext): void {
  runs.sort((a, b) => a.minTime - b.minTime);
  let first = 0;
  for (const stretch of stretchesOf(runs)) {
    context.check();
    const from = Math.max(stretch.from, context.bounds?.from ?? stretch.from);
    const to = Math.min(stretch.to, context.bounds?.to ?? stretch.to);
    // Runs begin in ascending order, and those that ended before this stretch have no part in a later one.
    while (first < runs.length && runs[first]!.maxTime < from) first++;
    const own: SharedRun[] = [];
    for (let i = first; i < runs.length && runs[i]!.minTime <= to; i++) {
      if (runs[i]!.maxTime >= from) own.push(runs[i]!);
    }
    compareStretch(own, { from, to, open }, context);
  }
}

interface Stretch {
  readonly from: number;
  to: number;
}

/** The times in which two or more sources have runs, both ends inclusive. The runs are in order of their first times. */
function stretchesOf(runs: readonly SharedRun[]): Stretch[] {
  const stretches: Stretch[] = [];
  // The source that reaches furthest so far, and how far the others reach.
  let last: { readonly of: ComparedSource; readonly to: number } | undefined;
  let others = Number.NEGATIVE_INFINITY;
  for (const { of, minTime, maxTime } of runs) {
    const reach = last !== undefined && last.of !== of ? last.to : others;
    const to = Math.min(maxTime, reach);
    const before = stretches.at(-1);
    if (to >= minTime) {
      if (before !== undefined && minTime <= before.to) before.to = Math.max(before.to, to);
      else stretches.push({ from: minTime, to });
    }
    if (last === undefined || last.of === of) {
      last = { of, to: Math.max(maxTime, last?.to ?? maxTime) };
    } else if (maxTime > last.to) {
      others = Math.max(others, last.to);
      last = { of, to: maxTime };
    } else {
      others = Math.max(others, maxTime);
    }
  }
  const [first, end] = [stretches[0], stretches.at(-1)];
  const hasHead = runs.some(({ of }) => of.source.kind === "head");
  // The runs of a head are short and many: one stretch costs less than thousands.
  return hasHead && first !== undefined ? [{ from: first.from, to: end!.to }] : stretches;
}

function compareStretch(
  runs: readonly SharedRun[],
  range: Stretch & { readonly open: OpenMinutes },
  context: TieContext,
): void {
  const { rows } = context;
  if (!gatherMarks(runs, range.open, context)) gatherRows(runs, range, context);
  const tied = rows.tied();
  if (tied.length === 0) return;
  const placeOf = (at: number) => runs[rows.runs[at]!]!.of.place;
  tied.sort((a, b) => rows.keys[a]! - rows.keys[b]! || placeOf(a) - placeOf(b));
  for (let from = 0; from < tied.length; ) {
    const key = rows.keys[tied[from]!]!;
    let to = from + 1;
    while (to < tied.length && rows.keys[tied[to]!] === key) to++;
    compareTie(tied.slice(from, to), runs, context);
    from = to;
  }
}

/** Rows, run by run, with a key that equal rows share: their time or their mark. Used again for each stretch. */
export class StretchRows {
  keys = new Float64Array(1024);
  runs = new Uint32Array(1024);
  rows = new Uint32Array(1024);
  /** The halves of the keys as bits. */
  #words = new Uint32Array(this.keys.buffer);
  /** A hash table of keys: places plus one. */
  #slots = new Int32Array(2048);
  #isTied = new Uint8Array(1024);
  #count = 0;

  clear(): void {
    this.#count = 0;
  }

  push(key: number, run: number, row: number): void {
    if (this.#count === this.keys.length) this.#grow();
    this.keys[this.#count] = key;
    this.runs[this.#count] = run;
    this.rows[this.#count++] = row;
  }

  /** Places of the rows whose key another row has too. */
  tied(): number[] {
    const places: number[] = [];
    if (!this.#flagTied()) return places;
    for (let at = 0; at < this.#count; at++) if (this.#isTied[at] === 1) places.push(at);
    return places;
  }

  /** Flags the rows whose key another row has too; false when there are none. */
  #flagTied(): boolean {
    const count = this.#count;
    let size = 64;
    while (size < 2 * count) size *= 2;
    const slots = this.#slots;
    const words = this.#words;
    const keys = this.keys;
    slots.fill(0, 0, size);
    this.#isTied.fill(0, 0, count);
    let isAny = false;
    for (let at = 0; at < count; at++) {
      let slot = Math.imul(words[2 * at]! ^ Math.imul(words[2 * at + 1]!, 0x85ebca6b), 0x9e3779b1);
      slot = (slot ^ (slot >>> 15)) & (size - 1);
      for (; slots[slot] !== 0; slot = (slot + 1) & (size - 1)) {
        const other = slots[slot]! - 1;
        if (keys[other] !== keys[at]) continue;
        this.#isTied[other] = 1;
        this.#isTied[at] = 1;
        isAny = true;
        break;
      }
      if (slots[slot] === 0) slots[slot] = at + 1;
    }
    return isAny;
  }

  #grow(): void {
    const length = this.keys.length * 2;
    const { keys, runs, rows } = this;
    this.keys = new Float64Array(length);
    this.runs = new Uint32Array(length);
    this.rows = new Uint32Array(length);
    this.keys.set(keys);
    this.runs.set(runs);
    this.rows.set(rows);
    this.#words = new Uint32Array(this.keys.buffer);
    this.#slots = new Int32Array(2 * length);
    this.#isTied = new Uint8Array(length);
  }
}

/** Gathers all rows of the runs by their marks, without reading a page; false where marks are missing, or only some rows are wanted. */
function gatherMarks(
  runs: readonly SharedRun[],
  open: OpenMinutes,
  { rows, check, bounds }: TieContext,
): boolean {
  if (open !== "all" || bounds !== undefined) return false;
  rows.clear();
  for (let number = 0; number < runs.length; number++) {
    check();
    const { of, block, from, to, named } = runs[number]!;
    const marks = named === undefined ? of.source.marks?.(block) : undefined;
    if (marks === undefined) return false;
    for (let row = from; row < to; row++) rows.push(marks[row]!, number, row);
  }
  return true;
}

function gatherRows(
  runs: readonly SharedRun[],
  { from, to, open }: Stretch & { readonly open: OpenMinutes },
  { rows, blocks, check }: TieContext,
): void {
  rows.clear();
  for (let number = 0; number < runs.length; number++) {
    check();
    const run = runs[number]!;
    const { of, named, block } = run;
    const times = blocks.of(of, block).timestamps();
    const isPicked = open !== "all" || named !== undefined;
    // The rows of a sealed run ascend in time.
    const ascends = of.source.kind === "segment";
    const first = ascends ? lowerBound(times, from, run.from, run.to) : run.from;
    for (let row = first; row < run.to; row++) {
      const time = times[row]!;
      if (time > to && ascends) break;
      if (time > to || time < from) continue;
      if (isPicked) {
        const minute = Math.floor(time / minuteNs);
        if (named?.has(minute) || (open !== "all" && !open.has(minute))) continue;
      }
      rows.push(time, number, row);
    }
  }
}

const noTwins = new Map<number, number[]>();

/** Compares rows of one time or mark. They come in order of their sources. */
function compareTie(
  tie: readonly number[],
  runs: readonly SharedRun[],
  { blocks, check, rows: { runs: runNumbers, rows } }: TieContext,
): void {
  const runOf = (at: number) => runs[runNumbers[at]!]!;
  const blockOf = (at: number) => blocks.of(runOf(at).of, runOf(at).block);
  if (runOf(tie[0]!).of === runOf(tie.at(-1)!).of) return;
  const hash = (at: number) => hashRow(blockOf(at), rows[at]!);
  const isSmall = tie.length ** 2 <= maxPairs;
  const byHash = isSmall ? noTwins : new Map<number, number[]>();
  for (let i = 0, first = 0; i < tie.length; i++) {
    const at = tie[i]!;
    const { of, block } = runOf(at);
    if (i % rowsPerCheck === 0) check();
    if (of !== runOf(tie[first]!).of) {
      // Only rows of earlier sources count.
      if (!isSmall) for (; first < i; first++) addTo(byHash, hash(tie[first]!), tie[first]!);
      first = i;
    }
    if (!of.isWanted || first === 0) continue;
    const twins = isSmall ? tie : (byHash.get(hash(at)) ?? []);
    const own = blockOf(at);
    const count = isSmall ? first : twins.length;
    for (let j = 0; j < count; j++) {
      const other = twins[j]!;
      if (!isSameRow(blockOf(other), rows[other]!, own, rows[at]!)) continue;
      of.found.add(block, rows[at]!);
      break;
    }
  }
}

function isSameRow(a: Block, rowA: number, b: Block, rowB: number): boolean {
  return a.timestamps()[rowA] === b.timestamps()[rowB] && compareRows(a, rowA, b, rowB);
}

function addTo(map: Map<number, number[]>, key: number, value: number): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

/** True when line and metadata of two rows are equal. */
function compareRows(a: Block, rowA: number, b: Block, rowB: number): boolean {
  if (!isSameValue(a.lines(), rowA, b.lines(), rowB)) return false;
  for (const name of new Set([...a.metadataNames(), ...b.metadataNames()])) {
    if (metadataText(a.metadata(name), rowA) !== metadataText(b.metadata(name), rowB)) return false;
  }
  return true;
}

/** Equal for rows that are equal in line and metadata, whatever other rows their blocks have. */
function hashRow(block: Block, row: number): number {
  let hash = crc32(valueAt(block.lines(), row));
  for (const name of [...block.metadataNames()].sort()) {
    const value = metadataText(block.metadata(name), row);
    if (value !== "") hash = crc32(`${name}\n${value}`, hash);
  }
  return hash;
}

/** Bytes compared one by one first: a call of the system's comparison pays only for longer values. */
const firstBytes = 32;

function isSameValue(a: BytesColumn, rowA: number, b: BytesColumn, rowB: number): boolean {
  const from = a.offsets[rowA]!;
  const other = b.offsets[rowB]!;
  const length = a.offsets[rowA + 1]! - from;
  if (b.offsets[rowB + 1]! - other !== length) return false;
  const first = Math.min(length, firstBytes);
  for (let i = 0; i < first; i++) if (a.bytes[from + i] !== b.bytes[other + i]) return false;
  if (length === first) return true;
  return Buffer.compare(valueAt(a, rowA), valueAt(b, rowB)) === 0;
}

function valueAt({ bytes, offsets }: BytesColumn, row: number): Uint8Array {
  return bytes.subarray(offsets[row], offsets[row + 1]);
}

/** The value of a row, as latin1: only equality matters. */
export function metadataText(column: MetadataColumn | undefined, row: number): string {
  if (column === undefined) return "";
  const isCoded = column.kind === "dictionary";
  const value = isCoded ? valueAt(column.dictionary, column.codes[row]!) : valueAt(column, row);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("latin1");
}

/** Memory of decoded blocks that stay: the next stream is most often in the same blocks. */
const maxBlockBytes = 64 * 1024 * 1024;
/** Memory of a row in a block beside its line. */
const rowBytes = 32;
/** More blocks than any source has. */
const maxBlocks = 2 ** 26;

/** Decoded blocks of many sources. The least recently used are dropped first. */
export class SharedBlocks {
  /** The least recently used first. */
  readonly #known = new Map<number, { readonly block: Block; readonly bytes: number }>();
  #bytes = 0;

  of({ source, place }: ComparedSource, number: number): Block {
    const key = place * maxBlocks + number;
    let known = this.#known.get(key);
    if (known === undefined) {
      const { count, rowStart, lineBytes } = source.runs(number);
      const lines = lineBytes.reduce((sum, bytes) => sum + bytes, 0);
      known = { block: source.block(number), bytes: 200 + lines + rowStart[count]! * rowBytes };
      this.#known.set(key, known);
      this.#bytes += known.bytes;
      this.#dropOld();
    } else if (this.#bytes > maxBlockBytes / 2) {
      // The order matters only where some blocks are about to be dropped.
      this.#known.delete(key);
      this.#known.set(key, known);
    }
    return known.block;
  }

  /** A block that is larger than the bound stays alone. */
  #dropOld(): void {
    for (const [key, { bytes }] of this.#known) {
      if (this.#bytes <= maxBlockBytes || this.#known.size === 1) return;
      this.#known.delete(key);
      this.#bytes -= bytes;
    }
  }
}
