import { equalBytes } from "@skald/kernels";
import { type Batch, type BatchStream, fnv1aBytes, lowerBound } from "@skald/model";
import type { HeadBlock } from "@skald/storage";
import { type RunChains, rowsOfRun } from "./run-chains.js";

/** The rows of a head, and the streams whose rows are hashed. */
interface HashedRows {
  readonly chains: RunChains;
  readonly blocks: readonly HeadBlock[];
  readonly hashed: Map<number, HashedStream>;
}

/** Steps, of about 8 ns, of a search for one stream of one push before its rows are hashed instead. */
const maxSteps = 20_000;
/** A row adds steps: it may take about as long as a lookup among hashed rows, a µs and a ns for each byte. */
const stepsOfRow = 128;
const bytesOfStep = 8;
const stepsOf = { look: 1 / 4, firstLook: 8, bisect: 8, compare: 8 } as const;
const rowsOfStep = 8;

/** A run of the stream, as a search looks at it. */
interface SearchedRun {
  readonly run: number;
  readonly block: HeadBlock;
  readonly from: number;
  readonly to: number;
  /** See `fallsOf` of RunChains; null until somebody asked. */
  falls: readonly number[] | undefined | null;
}

/**
 * Finds rows of a batch that a head has already. It looks back through the runs of the stream that reach the time of the
 * row, which is the last run for rows in order. Where that takes long (many runs in which times fall, many equal times), it
 * hashes all rows of the stream once, and from then on each row costs a lookup. No row may be appended while it is in use.
 */
export class HeadDuplicates {
  readonly #head: HashedRows;
  readonly #stream: number;
  readonly #batch: Batch;
  /** The runs that were looked at, newest first. */
  readonly #runs: SearchedRun[] = [];
  /** Of each of them its earliest and latest time, and the latest time of all runs before it. */
  readonly #bounds: number[] = [];
  #hashed: HashedStream | undefined;
  #stepsLeft = maxSteps;

  constructor(head: HashedRows, stream: number, batch: Batch) {
    this.#head = head;
    this.#stream = stream;
    this.#batch = batch;
  }

  /** `time` is the time of the row, ns since the start of the head's day. */
  has(row: number, time: number): boolean {
    if (this.#head.hashed.has(this.#stream)) return this.#lookUp(row, time);
    return this.#search(row, time) ?? this.#lookUp(row, time);
  }

  /** Returns undefined when the search takes too many steps. */
  #search(row: number, time: number): boolean | undefined {
    this.#stepsLeft += stepsOfRow + this.#batch.lineLength[row]! / bytesOfStep;
    const runs = this.#runs;
    const bounds = this.#bounds;
    for (let at = 0; at < runs.length || this.#takeRun(); at++) {
      this.#stepsLeft -= stepsOf.look;
      if (this.#stepsLeft < 0) return undefined;
      const isWithin = time >= bounds[3 * at]! && time <= bounds[3 * at + 1]!;
      if (isWithin && this.#isIn(runs[at]!, row, time)) return true;
      if (time > bounds[3 * at + 2]!) return false;
    }
    return false;
  }

  /** Takes the run before those that were looked at; false when there is none. */
  #takeRun(): boolean {
    const { chains, blocks } = this.#head;
    const after = this.#runs.at(-1);
    const run = after === undefined ? chains.lastRun(this.#stream) : chains.runBefore(after.run);
    if (run < 0) return false;
    this.#stepsLeft -= stepsOf.firstLook;
    const index = chains.blockOf(run);
    const block = blocks[index] as HeadBlock;
    const inBlock = run - chains.firstRun(index);
    const { runMin, runMax } = block.columns;
    this.#bounds.push(runMin[inBlock]!, runMax[inBlock]!, chains.maxBefore(run));
    this.#runs.push({ run, block, ...rowsOfRun(block, inBlock), falls: null });
    return true;
  }

  /** Whether a run has a row. */
  #isIn(run: SearchedRun, row: number, time: number): boolean {
    const { block, from, to } = run;
    const { timestamps } = block.columns;
    if (run.falls === null) run.falls = this.#head.chains.fallsOf(run.run);
    const { falls } = run;
    if (falls === undefined) {
      this.#stepsLeft -= (to - from) / rowsOfStep;
      for (let at = to - 1; at >= from; at--)
        if (timestamps[at] === time && this.#isRow(block, at, row)) return true;
      return false;
    }
    for (let part = falls.length; part >= 0; part--) {
      const start = part === 0 ? from : falls[part - 1]!;
      const end = falls[part] ?? to;
      if (time < timestamps[start]! || time > timestamps[end - 1]!) continue;
      this.#stepsLeft -= stepsOf.bisect;
      let at = lowerBound(timestamps, time, start, end);
      for (; at < end && timestamps[at] === time; at++)
        if (this.#isRow(block, at, row)) return true;
    }
    return false;
  }

  #isRow(block: HeadBlock, at: number, row: number): boolean {
    this.#stepsLeft -= stepsOf.compare;
    return equalsHeadRow(this.#batch, row, block, at);
  }

  #lookUp(row: number, time: number): boolean {
    this.#hashed ??= this.#catchUp();
    return this.#hashed.has(this.#head, this.#batch, row, time);
  }

  #catchUp(): HashedStream {
    const { hashed } = this.#head;
    const index = hashed.get(this.#stream) ?? new HashedStream(this.#stream);
    hashed.set(this.#stream, index);
    index.catchUp(this.#head);
    return index;
  }
}

/** Up to this many rows of one time are compared one by one; with more, all rows are hashed. */
const maxCompared = 32;

/**
 * Finds rows of a stream of a batch that equal an earlier row of it. While times do not fall, a row is compared with the
 * rows of the same time right before it; after that, or with many equal times, rows are hashed.
 */
export class BatchDuplicates {
  readonly #batch: Batch;
  readonly #rowStart: number;
  #hashes: RowHashes | undefined;
  #hashedTo: number;
  #falls = false;

  constructor(batch: Batch, stream: BatchStream) {
    this.#batch = batch;
    this.#rowStart = stream.rowStart;
    this.#hashedTo = stream.rowStart;
  }

  /** Must be called at each row that is older than the row before it. */
  fall(): void {
    this.#falls = true;
  }

  /** Must be called for rows in ascending order. */
  has(row: number): boolean {
    const canCompare = this.#hashes === undefined && !this.#falls;
    return (canCompare ? this.#compareBack(row) : undefined) ?? this.#lookUp(row);
  }

  /** Returns undefined when too many rows have the time. */
  #compareBack(row: number): boolean | undefined {
    const batch = this.#batch;
    const end = Math.max(this.#rowStart, row - maxCompared);
    for (let other = row - 1; other >= end; other--) {
      if (!this.#sameTime(other, row)) return false;
      if (equalBatchRows(batch, other, row)) return true;
    }
    return end === this.#rowStart ? false : undefined;
  }

  #lookUp(row: number): boolean {
    this.#hashes ??= new RowHashes();
    for (; this.#hashedTo < row; this.#hashedTo++) {
      const hash = this.#hash(this.#hashedTo);
      // Many equal rows would make a long chain.
      if (!this.#isKnown(this.#hashes, hash, this.#hashedTo)) {
        this.#hashes.add(hash, this.#hashedTo);
      }
    }
    return this.#isKnown(this.#hashes, this.#hash(row), row);
  }

  #isKnown(hashes: RowHashes, hash: number, row: number): boolean {
    const equals = (other: number) =>
      this.#sameTime(other, row) && equalBatchRows(this.#batch, other, row);
    return hashes.some(hash, equals);
  }

  #sameTime(a: number, b: number): boolean {
    const { seconds, nanos } = this.#batch;
    return seconds[a] === seconds[b] && nanos[a] === nanos[b];
  }

  #hash(row: number): number {
    const { seconds, nanos } = this.#batch;
    return hashBatchRow(this.#batch, row, (seconds[row]! % 86_400) * 1e9 + nanos[row]!);
  }
}

/** The rows of one stream of a head by their hash; `catchUp` must be called before `has`. */
export class HashedStream {
  readonly #stream: number;
  readonly #index = new RowHashes();
  /** The last run that was read, and the first row of its block that was not read. */
  #run = -1;
  #row = 0;

  constructor(stream: number) {
    this.#stream = stream;
  }

  catchUp(head: HashedRows): void {
    const { chains, blocks } = head;
    const last = chains.lastRun(this.#stream);
    const added: { index: number; start: number; to: number }[] = [];
    for (let run = last; run >= 0 && run >= this.#run; run = chains.runBefore(run)) {
      const index = chains.blockOf(run);
      const { from, to } = rowsOfRun(blocks[index] as HeadBlock, run - chains.firstRun(index));
      added.push({ index, start: run === this.#run ? this.#row : from, to });
    }
    this.#index.reserve(added.reduce((sum, { start, to }) => sum + to - start, 0));
    for (const { index, start, to } of added) {
      const block = blocks[index] as HeadBlock;
      for (let row = start; row < to; row++) {
        this.#index.add(hashHeadRow(block, row), packRow(index, row));
      }
    }
    this.#run = last;
    this.#row = added[0]?.to ?? this.#row;
  }

  has(head: HashedRows, batch: Batch, row: number, time: number): boolean {
    return this.#index.some(hashBatchRow(batch, row, time), (packed) => {
      const block = head.blocks[packed >>> rowBits] as HeadBlock;
      const at = packed & rowMask;
      return block.columns.timestamps[at] === time && equalsHeadRow(batch, row, block, at);
    });
  }
}

/** A block has 65,536 rows at most, and a head far fewer blocks than the 32,767 that fit. */
const rowBits = 16;
const rowMask = 0xffff;

function packRow(block: number, row: number): number {
  return (block << rowBits) | row;
}

/** Hashes time, line and metadata of a row of a batch; equal rows have equal hashes. */
function hashBatchRow(batch: Batch, row: number, time: number): number {
  const { bytes, lineStart, lineLength, metaStart, metaValueStart, metaValueLength } = batch;
  let hash = hashTime(time);
  hash = hashBytes(hash, bytes, lineStart[row]!, lineLength[row]!);
  for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) {
    hash = hashText(hash, batch.metaNames[batch.metaName[pair]!]!);
    hash = hashBytes(hash, bytes, metaValueStart[pair]!, metaValueLength[pair]!);
  }
  return hash;
}

/** Computes the same hash for a row of a head block. */
function hashHeadRow(block: HeadBlock, row: number): number {
  const { timestamps, lines, lineOffset, metaStart, pairName, valueOffset, values } = block.columns;
  let hash = hashTime(timestamps[row]!);
  hash = hashBytes(hash, lines, lineOffset[row]!, lineOffset[row + 1]! - lineOffset[row]!);
  for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) {
    hash = hashText(hash, block.metaName(pairName[pair]!));
    hash = hashBytes(hash, values, valueOffset[pair]!, valueOffset[pair + 1]! - valueOffset[pair]!);
  }
  return hash;
}

/** Whether two rows of a batch, of equal times, have the same line and metadata. */
function equalBatchRows(batch: Batch, a: number, b: number): boolean {
  if (batch.lineLength[a] !== batch.lineLength[b] || batch.levels[a] !== batch.levels[b]) {
    return false;
  }
  const source = batch.bytes;
  const { lineStart, lineLength, metaStart, metaName, metaValueStart, metaValueLength } = batch;
  if (!equalBytes(source, lineStart[a]!, source, lineStart[b]!, lineLength[a]!)) return false;
  const pairs = metaStart[a + 1]! - metaStart[a]!;
  if (pairs !== metaStart[b + 1]! - metaStart[b]!) return false;
  for (let i = 0; i < pairs; i++) {
    const left = metaStart[a]! + i;
    const right = metaStart[b]! + i;
    const length = metaValueLength[left]!;
    if (metaName[left] !== metaName[right] || length !== metaValueLength[right]) return false;
    if (!equalBytes(source, metaValueStart[left]!, source, metaValueStart[right]!, length)) {
      return false;
    }
  }
  return true;
}

/** Whether a row of a batch and one of a head block, of equal times, have the same line and metadata. */
function equalsHeadRow(batch: Batch, row: number, block: HeadBlock, at: number): boolean {
  const c = block.columns;
  const length = batch.lineLength[row]!;
  if (length !== c.lineOffset[at + 1]! - c.lineOffset[at]!) return false;
  if (batch.levels[row] !== c.levels[at]) return false;
  const source = batch.bytes;
  const lineStart = batch.lineStart[row]!;
  if (!equalBytes(source, lineStart, c.lines, c.lineOffset[at]!, length)) return false;
  const first = batch.metaStart[row]!;
  const pairs = batch.metaStart[row + 1]! - first;
  if (pairs !== c.metaStart[at + 1]! - c.metaStart[at]!) return false;
  for (let i = 0; i < pairs; i++) {
    const pair = c.metaStart[at]! + i;
    const name = batch.metaNames[batch.metaName[first + i]!];
    const size = batch.metaValueLength[first + i]!;
    if (name !== block.metaName(c.pairName[pair]!)) return false;
    const from = c.valueOffset[pair]!;
    if (size !== c.valueOffset[pair + 1]! - from) return false;
    const start = batch.metaValueStart[first + i]!;
    if (!equalBytes(source, start, c.values, from, size)) return false;
  }
  return true;
}

/** Open addressing: hashes, and numbers plus one, 0 for an empty place. */
interface Places {
  readonly hashes: Int32Array;
  readonly numbers: Int32Array;
}

const firstPlaces = 64;
/** Places of the smaller table that each addition moves. */
const movedAtOnce = 8;

/**
 * Numbers of rows by hash; several rows may have one hash. A table that is full is moved to a larger one step by step, because to
 * move millions of rows at once takes a tenth of a second.
 */
export class RowHashes {
  #places = placesOf(firstPlaces);
  #size = 0;
  /** The table before, and the place from which on its rows are still to be moved. */
  #before: Places | undefined;
  #moved = 0;

  add(hash: number, number: number): void {
    if (2 * this.#size >= this.#places.numbers.length) this.#grow(2 * this.#size);
    this.#move(movedAtOnce);
    put(this.#places, hash, number + 1);
    this.#size++;
  }

  /** Makes room for more rows, so that the table need not grow for them. */
  reserve(count: number): void {
    const size = this.#size + count;
    if (2 * size > this.#places.numbers.length) this.#grow(size);
  }

  /** Whether a number with this hash satisfies the test. */
  some(hash: number, test: (number: number) => boolean): boolean {
    const before = this.#before;
    return someOf(this.#places, hash, test) || (before !== undefined && someOf(before, hash, test));
  }

  #grow(size: number): void {
    this.#move(Number.POSITIVE_INFINITY);
    this.#before = this.#places;
    this.#moved = 0;
    let length = this.#places.numbers.length;
    while (length < 2 * size) length *= 2;
    this.#places = placesOf(length);
  }

  #move(count: number): void {
    if (this.#before === undefined) return;
    const { hashes, numbers } = this.#before;
    const to = Math.min(numbers.length, this.#moved + count);
    for (let at = this.#moved; at < to; at++) {
      if (numbers[at] !== 0) put(this.#places, hashes[at]!, numbers[at]!);
    }
    this.#moved = to;
    if (to === numbers.length) this.#before = undefined;
  }
}

function placesOf(length: number): Places {
  return { hashes: new Int32Array(length), numbers: new Int32Array(length) };
}

function put({ hashes, numbers }: Places, hash: number, number: number): void {
  const mask = numbers.length - 1;
  let at = hash & mask;
  while (numbers[at] !== 0) at = (at + 1) & mask;
  hashes[at] = hash;
  numbers[at] = number;
}

function someOf(
  { hashes, numbers }: Places,
  hash: number,
  test: (number: number) => boolean,
): boolean {
  const mask = numbers.length - 1;
  for (let at = hash & mask; numbers[at] !== 0; at = (at + 1) & mask) {
    if (hashes[at] === hash && test(numbers[at]! - 1)) return true;
  }
  return false;
}

/** Differs between processes, so that nobody can prepare rows that share a hash. */
const seed = (Math.random() * 2 ** 32) | 0;

const fnvPrime = 0x01000193;

function hashTime(time: number): number {
  const low = time % 4_294_967_296;
  return mix(mix(seed, low | 0), ((time - low) / 4_294_967_296) | 0);
}

function hashBytes(hash: number, bytes: Uint8Array, start: number, length: number): number {
  return mix(fnv1aBytes(bytes, start, start + length, hash), length);
}

function hashText(hash: number, text: string): number {
  let h = hash;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), fnvPrime);
  return mix(h, text.length);
}

function mix(hash: number, value: number): number {
  let h = Math.imul(hash ^ value, 0x85ebca6b);
  h ^= h >>> 15;
  return Math.imul(h, 0xc2b2ae35) ^ (h >>> 13);
}
