import type { StreamColumns } from "@skald/contracts";
import { codeOf, hashPair, hashText, type LabelTable, type StreamColumn } from "@skald/storage";
import { allHashes, HashNumbers, type HashPart } from "./hash-numbers.js";
import { ByteList, NumberList } from "./lists.js";

/** Puts streams of several sources together, each once. Of a stream that is there already only its hash is looked at. */
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

  /** A column, the pair of each of its codes plus one (0 where it was not asked for), and how to ask. */
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

/** One of some values in columns. */
interface PairValue {
  readonly hashes: Uint32Array;
  readonly bytes: Uint8Array;
  readonly offsets: Uint32Array;
  readonly at: number;
}

function hashesOfName(name: string): readonly [number, number] {
  return [hashText(name, 0), hashText(name, 1)];
}
