import type { StreamColumns } from "@skald/contracts";
import { codeOf, type LabelTable, type StreamColumn } from "@skald/storage";
import { HashSet } from "./hash-set.js";

/** Puts streams of several sources together, each once. Of a stream that is there already only its hash is looked at. */
export class StreamCollector {
  readonly #known = new HashSet();
  readonly #pairIds = new Map<string, Map<string, number>>();
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  readonly #hashes = new NumberList();
  readonly #starts = new NumberList();
  readonly #pairs = new NumberList();

  /** Adds the streams of a table that are in a list. */
  addTable(table: LabelTable, streams: Uint32Array): void {
    const { hashes } = table;
    const columns = table.names.map((name) => pairColumn(table.column(name) as StreamColumn));
    for (const stream of streams) {
      if (!this.#begin(hashes[2 * stream]!, hashes[2 * stream + 1]!)) continue;
      for (const { column, ids } of columns) {
        const code = codeOf(column, stream);
        if (code === 0) continue;
        if (ids[code] === 0) ids[code] = this.#pairId(column.name, column.value(code - 1)) + 1;
        this.#pairs.push(ids[code]! - 1);
      }
    }
  }

  /** Adds what another collector found. */
  addColumns({ hashes, starts, pairs, names, values }: StreamColumns): void {
    const ids = new Uint32Array(names.length);
    for (let stream = 0; stream + 1 < starts.length; stream++) {
      if (!this.#begin(hashes[2 * stream]!, hashes[2 * stream + 1]!)) continue;
      for (let at = starts[stream]!; at < starts[stream + 1]!; at++) {
        const pair = pairs[at]!;
        if (ids[pair] === 0) ids[pair] = this.#pairId(names[pair]!, values[pair]!) + 1;
        this.#pairs.push(ids[pair]! - 1);
      }
    }
  }

  finish(): StreamColumns {
    this.#starts.push(this.#pairs.count);
    return {
      hashes: this.#hashes.take(),
      starts: this.#starts.take(),
      pairs: this.#pairs.take(),
      names: this.#names,
      values: this.#values,
    };
  }

  #begin(first: number, second: number): boolean {
    if (!this.#known.add(first, second)) return false;
    this.#hashes.push(first);
    this.#hashes.push(second);
    this.#starts.push(this.#pairs.count);
    return true;
  }

  #pairId(name: string, value: string): number {
    let ofName = this.#pairIds.get(name);
    if (ofName === undefined) {
      ofName = new Map();
      this.#pairIds.set(name, ofName);
    }
    const known = ofName.get(value);
    if (known !== undefined) return known;
    const id = this.#values.push(value) - 1;
    this.#names.push(name);
    ofName.set(value, id);
    return id;
  }
}

/** A column with the pair of each of its codes plus one, 0 where it was not asked for. */
function pairColumn(column: StreamColumn) {
  return { column, ids: new Uint32Array(column.valueCount + 1) };
}

/** Numbers of 32 bits, as many as come. */
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
