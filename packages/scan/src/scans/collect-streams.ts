import type { StreamColumns } from "@skald/contracts";
import { codeOf, hashPair, hashText, type LabelTable, type StreamColumn } from "@skald/storage";

/** Collects streams from several sources, each once. It reads only the hash of a stream that it knows already. */
export class StreamCollector {
  readonly #known = new HashNumbers();
  readonly #knownPairs = new HashNumbers();
  readonly #names: string[] = [];
  readonly #numberOfName = new Map<string, number>();
  readonly #pairNames = new NumberList();
  readonly #values = new ByteList();
  readonly #valueEnds = new NumberList();
  readonly #valueHashes = new NumberList();
  readonly #hashes = new NumberList();
  readonly #starts = new NumberList();
  readonly #pairs = new NumberList();
  readonly #part: HashPart;

  constructor(part: HashPart = allHashes) {
    this.#part = part;
  }

  /** Adds the streams of a table that are in a list. */
  addTable(table: LabelTable, streams: Uint32Array): void {
    const { hashes } = table;
    const { index, count } = this.#part;
    if (this.#known.size === 0) this.#known.reserve(streams.length / count);
    const columns = table.names.map((name) => this.#pairsOf(table.column(name) as StreamColumn));
    for (let i = 0; i < streams.length; i++) {
      const stream = streams[i]!;
      if (count > 1 && hashes[2 * stream + 1]! % count !== index) continue;
      if (!this.#begin(hashes[2 * stream]!, hashes[2 * stream + 1]!)) continue;
      for (let c = 0; c < columns.length; c++) {
        const { column, ids, add } = columns[c]!;
        const code = codeOf(column, stream);
        if (code === 0) continue;
        if (ids[code] === 0) ids[code] = add(code - 1) + 1;
        this.#pairs.push(ids[code]! - 1);
      }
    }
  }

  /** Adds what another collector found. */
  addColumns(found: StreamColumns): void {
    if (this.#known.size === 0) {
      this.#known.reserve(found.starts.length);
      this.#knownPairs.reserve(found.pairNames.length);
    }
    const { hashes, starts, pairs, names, pairNames, values, valueHashes } = found;
    const nameNumbers = names.map((name) => this.#nameNumber(name));
    const nameHashes = names.map(hashesOfName);
    const ids = new Uint32Array(pairNames.length);
    for (let stream = 0; stream + 1 < starts.length; stream++) {
      if (!this.#begin(hashes[2 * stream]!, hashes[2 * stream + 1]!)) continue;
      for (let at = starts[stream]!; at < starts[stream + 1]!; at++) {
        const pair = pairs[at]!;
        if (ids[pair] === 0) {
          const name = pairNames[pair]!;
          ids[pair] =
            this.#addPair(
              { number: nameNumbers[name]!, hashes: nameHashes[name]! },
              { hashes: valueHashes, at: pair, ...values },
            ) + 1;
        }
        this.#pairs.push(ids[pair]! - 1);
      }
    }
  }

  finish(): StreamColumns {
    this.#starts.push(this.#pairs.count);
    const ends = this.#valueEnds.take();
    const offsets = new Uint32Array(ends.length + 1);
    offsets.set(ends, 1);
    return {
      hashes: this.#hashes.take(),
      starts: this.#starts.take(),
      pairs: this.#pairs.take(),
      names: this.#names,
      pairNames: this.#pairNames.take(),
      values: { offsets, bytes: this.#values.take() },
      valueHashes: this.#valueHashes.take(),
    };
  }

  #begin(first: number, second: number): boolean {
    const { size } = this.#known;
    if (this.#known.numberOf(first, second) < size) return false;
    this.#hashes.push(first);
    this.#hashes.push(second);
    this.#starts.push(this.#pairs.count);
    return true;
  }

  /** A column, the number of the pair of each code plus one (0: not asked for yet), and the function that finds it. */
  #pairsOf(column: StreamColumn) {
    const name = { number: this.#nameNumber(column.name), hashes: hashesOfName(column.name) };
    const { hashes, bytes, offsets } = column;
    return {
      column,
      ids: new Uint32Array(column.valueCount + 1),
      add: (code: number) => this.#addPair(name, { hashes, at: code, bytes, offsets }),
    };
  }

  #addPair(name: PairName, value: PairValue): number {
    const { hashes, at, bytes, offsets } = value;
    const [first, second] = [hashes[2 * at]!, hashes[2 * at + 1]!];
    const { size } = this.#knownPairs;
    const id = this.#knownPairs.numberOf(
      hashPair(name.hashes[0], first),
      hashPair(name.hashes[1], second),
    );
    if (id < size) return id;
    this.#pairNames.push(name.number);
    this.#values.append(bytes, offsets[at]!, offsets[at + 1]!);
    this.#valueEnds.push(this.#values.count);
    this.#valueHashes.push(first);
    this.#valueHashes.push(second);
    return id;
  }

  #nameNumber(name: string): number {
    const known = this.#numberOfName.get(name);
    if (known !== undefined) return known;
    const number = this.#names.push(name) - 1;
    this.#numberOfName.set(name, number);
    return number;
  }
}

interface PairName {
  readonly number: number;
  readonly hashes: readonly [number, number];
}

/** One of several values in columns. */
interface PairValue {
  readonly hashes: Uint32Array;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly at: number;
}

function hashesOfName(name: string): readonly [number, number] {
  return [hashText(name, 0), hashText(name, 1)];
}

const initialSize = 1024;

/** The hashes whose second number has this remainder. */
export interface HashPart {
  readonly index: number;
  readonly count: number;
}

export const allHashes: HashPart = { index: 0, count: 1 };

/** Numbers hashes of two 32-bit numbers each: a table with open addressing that is at most half full. */
export class HashNumbers {
  #size = 0;
  /** The hash of each slot, and its number plus one. */
  #slots = new Uint32Array(3 * initialSize);
  #mask = initialSize - 1;

  get size(): number {
    return this.#size;
  }

  /** Makes room for more hashes. */
  reserve(more: number): void {
    while (2 * (this.#size + more) > this.#mask) this.#grow();
  }

  /** The number of a hash. A new hash gets the next number, which is the size before. */
  numberOf(first: number, second: number): number {
    if (2 * this.#size > this.#mask) this.#grow();
    return this.#place(first, second);
  }

  #place(first: number, second: number): number {
    const slots = this.#slots;
    let slot = first & this.#mask;
    for (;;) {
      const at = 3 * slot;
      const number = slots[at + 2]!;
      if (number === 0) {
        slots[at] = first;
        slots[at + 1] = second;
        slots[at + 2] = ++this.#size;
        return this.#size - 1;
      }
      if (slots[at] === first && slots[at + 1] === second) return number - 1;
      slot = (slot + 1) & this.#mask;
    }
  }

  #grow(): void {
    const old = this.#slots;
    const size = 2 * (this.#mask + 1);
    this.#slots = new Uint32Array(3 * size);
    this.#mask = size - 1;
    for (let at = 0; at < old.length; at += 3) {
      if (old[at + 2] === 0) continue;
      let slot = old[at]! & this.#mask;
      while (this.#slots[3 * slot + 2] !== 0) slot = (slot + 1) & this.#mask;
      this.#slots[3 * slot] = old[at]!;
      this.#slots[3 * slot + 1] = old[at + 1]!;
      this.#slots[3 * slot + 2] = old[at + 2]!;
    }
  }
}

/** Distinct streams by their hashes. */
export class StreamHashes {
  readonly #known = new HashNumbers();
  readonly #hashes: number[] = [];

  get count(): number {
    return this.#known.size;
  }

  add(first: number, second: number): void {
    const { size } = this.#known;
    if (this.#known.numberOf(first, second) === size) this.#hashes.push(first, second);
  }

  /** Two numbers for each. */
  take(): Uint32Array {
    return Uint32Array.from(this.#hashes);
  }
}

/** A growing list of 32-bit numbers. */
class NumberList {
  count = 0;
  #numbers = new Uint32Array(1024);

  push(number: number): void {
    if (this.count === this.#numbers.length) {
      const grown = new Uint32Array(2 * this.count);
      grown.set(this.#numbers);
      this.#numbers = grown;
    }
    this.#numbers[this.count++] = number;
  }

  take(): Uint32Array {
    return this.#numbers.slice(0, this.count);
  }
}

/** A growing list of bytes. */
class ByteList {
  count = 0;
  #bytes = new Uint8Array(4096);

  append(bytes: Uint8Array, from: number, to: number): void {
    const end = this.count + to - from;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    // Values are short: a call to copy them would take longer.
    for (let i = from; i < to; i++) this.#bytes[this.count++] = bytes[i]!;
  }

  take(): Uint8Array {
    return this.#bytes.slice(0, this.count);
  }
}
