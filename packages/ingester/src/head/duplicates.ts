import { equalBytes } from "@skald/kernels";
import { type Batch, type BatchStream, fnv1aBytes } from "@skald/model";
import type { HeadBlock } from "@skald/storage";
import type { RunChains } from "./run-chains.js";

/** The rows of a head, and the streams whose rows are hashed. */
interface HashedRows {
  readonly chains: RunChains;
  readonly blocks: readonly HeadBlock[];
  readonly hashed: Map<number, HashedStream>;
}

/** Steps of a search for one stream of one push before its rows are hashed instead. */
const maxSteps = 20_000;

/**
 * Finds rows of a batch that a head has already. It looks back through the runs of the stream that reach the time of the
 * row, which is the last run for rows in order. Where that takes long (rows far out of order, many equal times), it hashes
 * all rows of the stream once, and from then on each row costs a lookup.
 */
export class HeadDuplicates {
  readonly #head: HashedRows;
  readonly #stream: number;
  readonly #batch: Batch;
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
    const { chains, blocks } = this.#head;
    for (let run = chains.lastRun(this.#stream); run >= 0; run = chains.runBefore(run)) {
      if (--this.#stepsLeft < 0) return undefined;
      const index = chains.blockOf(run);
      const block = blocks[index] as HeadBlock;
      const { runMin, runMax, timestamps } = block.columns;
      const inBlock = run - chains.firstRun(index);
      if (time >= runMin[inBlock]! && time <= runMax[inBlock]!) {
        const { from, to } = rowsOfRun(block, inBlock);
        this.#stepsLeft -= (to - from) >> 3;
        for (let at = to - 1; at >= from; at--) {
          if (timestamps[at] !== time) continue;
          if (equalsHeadRow(this.#batch, row, block, at)) return true;
          this.#stepsLeft -= 8;
        }
      }
      if (time > chains.maxBefore(run)) return false;
    }
    return false;
  }

  #lookUp(row: number, time: number): boolean {
    let index = this.#head.hashed.get(this.#stream);
    if (index === undefined) {
      index = new HashedStream(this.#stream);
      this.#head.hashed.set(this.#stream, index);
    }
    index.catchUp(this.#head);
    return index.has(this.#head, this.#batch, row, time);
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
    let lastEnd = this.#row;
    for (let run = last; run >= 0 && run >= this.#run; run = chains.runBefore(run)) {
      const index = chains.blockOf(run);
      const block = blocks[index] as HeadBlock;
      const { from, to } = rowsOfRun(block, run - chains.firstRun(index));
      const start = run === this.#run ? this.#row : from;
      for (let row = start; row < to; row++) {
        this.#index.add(hashHeadRow(block, row), packRow(index, row));
      }
      if (run === last) lastEnd = to;
    }
    this.#run = last;
    this.#row = lastEnd;
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

/** The rows `[from, to)` of a run of a block. */
function rowsOfRun(block: HeadBlock, run: number): { from: number; to: number } {
  const { runStart } = block.columns;
  const to = run + 1 < block.runCount ? runStart[run + 1]! : block.rowCount;
  return { from: runStart[run]!, to };
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

/** Numbers of rows by hash, with open addressing; several rows may have one hash. */
class RowHashes {
  #hashes = new Int32Array(64);
  /** Number plus one, 0 for an empty place. */
  #numbers = new Int32Array(64);
  #size = 0;

  add(hash: number, number: number): void {
    if (2 * this.#size >= this.#numbers.length) this.#grow();
    this.#put(hash, number + 1);
    this.#size++;
  }

  /** Whether a number with this hash satisfies the test. */
  some(hash: number, test: (number: number) => boolean): boolean {
    const mask = this.#numbers.length - 1;
    for (let at = hash & mask; this.#numbers[at] !== 0; at = (at + 1) & mask) {
      if (this.#hashes[at] === hash && test(this.#numbers[at]! - 1)) return true;
    }
    return false;
  }

  #put(hash: number, number: number): void {
    const mask = this.#numbers.length - 1;
    let at = hash & mask;
    while (this.#numbers[at] !== 0) at = (at + 1) & mask;
    this.#hashes[at] = hash;
    this.#numbers[at] = number;
  }

  #grow(): void {
    const hashes = this.#hashes;
    const numbers = this.#numbers;
    this.#hashes = new Int32Array(2 * hashes.length);
    this.#numbers = new Int32Array(2 * numbers.length);
    for (let i = 0; i < numbers.length; i++) {
      if (numbers[i] !== 0) this.#put(hashes[i]!, numbers[i]!);
    }
  }
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
