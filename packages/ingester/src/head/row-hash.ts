import type { Batch } from "@skald/model";
import type { HeadBlock } from "@skald/storage";

/** Hash of time, line and metadata values of a row of a batch; equal rows have equal hashes. */
export function hashBatchRow(batch: Batch, row: number, time: number): number {
  const { bytes, lineStart, lineLength, metaStart, metaValueStart, metaValueLength } = batch;
  let hash = hashTime(time);
  hash = hashBytes(hash, bytes, lineStart[row]!, lineLength[row]!);
  for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) {
    hash = hashBytes(hash, bytes, metaValueStart[pair]!, metaValueLength[pair]!);
  }
  return hash;
}

/** The same hash for a row of a head block. */
export function hashHeadRow(block: HeadBlock, row: number): number {
  const { timestamps, lines, lineOffset, metaStart, valueOffset, values } = block.columns;
  let hash = hashTime(timestamps[row]!);
  hash = hashBytes(hash, lines, lineOffset[row]!, lineOffset[row + 1]! - lineOffset[row]!);
  for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) {
    hash = hashBytes(hash, values, valueOffset[pair]!, valueOffset[pair + 1]! - valueOffset[pair]!);
  }
  return hash;
}

/** Whether two rows of a batch, of equal times, have the same line and metadata. */
export function equalBatchRows(batch: Batch, a: number, b: number): boolean {
  if (batch.lineLength[a] !== batch.lineLength[b] || batch.levels[a] !== batch.levels[b]) {
    return false;
  }
  const source = asBuffer(batch.bytes);
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
export function equalsHeadRow(batch: Batch, row: number, block: HeadBlock, at: number): boolean {
  const c = block.columns;
  const length = batch.lineLength[row]!;
  if (length !== c.lineOffset[at + 1]! - c.lineOffset[at]!) return false;
  if (batch.levels[row] !== c.levels[at]) return false;
  const source = asBuffer(batch.bytes);
  const lineStart = batch.lineStart[row]!;
  if (!equalBytes(source, lineStart, asBuffer(c.lines), c.lineOffset[at]!, length)) return false;
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
    if (!equalBytes(source, start, asBuffer(c.values), from, size)) return false;
  }
  return true;
}

/** A set of hashes with a number each, by open addressing; several rows may have one hash. */
export class HashIndex {
  #hashes = new Int32Array(64);
  /** Number plus one, 0 for an empty place. */
  #numbers = new Int32Array(64);
  #size = 0;

  add(hash: number, number: number): void {
    if (2 * this.#size >= this.#numbers.length) this.#grow();
    this.#put(hash, number + 1);
    this.#size++;
  }

  /** Whether a number under this hash satisfies the test. */
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

/** Differs from process to process, so that nobody can prepare rows that share a hash. */
const seed = (Math.random() * 2 ** 32) | 0;

function hashTime(time: number): number {
  const low = time % 4_294_967_296;
  return mix(mix(seed, low | 0), ((time - low) / 4_294_967_296) | 0);
}

function hashBytes(hash: number, bytes: Uint8Array, start: number, length: number): number {
  let h = hash;
  for (let i = start; i < start + length; i++) h = Math.imul(h ^ bytes[i]!, 0x01000193);
  return mix(h, length);
}

function mix(hash: number, value: number): number {
  let h = Math.imul(hash ^ value, 0x85ebca6b);
  h ^= h >>> 15;
  return Math.imul(h, 0xc2b2ae35) ^ (h >>> 13);
}

function equalBytes(a: Buffer, aStart: number, b: Buffer, bStart: number, length: number): boolean {
  return a.compare(b, bStart, bStart + length, aStart, aStart + length) === 0;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
