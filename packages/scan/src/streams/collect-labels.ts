import { codeOf, type LabelTable } from "@skald/storage";
import { allHashes, HashNumbers, type HashPart } from "./hash-numbers.js";

/** Puts label names, or the values of one name, of several sources together, each once. */
export class LabelCollector {
  readonly #name: string | undefined;
  readonly #known = new HashNumbers();
  readonly #texts: string[] = [];
  readonly #part: HashPart;

  /** Collects the values of a name, or all names. */
  constructor(name: string | undefined, part: HashPart = allHashes) {
    this.#name = name;
    this.#part = part;
  }

  /** Adds what the streams of a table have that are in a list; undefined stands for all of them. */
  addTable(table: LabelTable, streams: Uint32Array | undefined): void {
    if (this.#name !== undefined) this.#addValues(table, this.#name, streams);
    else this.#addNames(table, streams);
  }

  /** Sorted. */
  finish(): string[] {
    return this.#texts.sort();
  }

  #addNames(table: LabelTable, streams: Uint32Array | undefined): void {
    for (const name of table.names) {
      if (this.#texts.includes(name)) continue;
      if (streams === undefined || hasName(table, name, streams)) this.#texts.push(name);
    }
  }

  #addValues(table: LabelTable, name: string, streams: Uint32Array | undefined): void {
    const column = table.column(name);
    if (column === undefined) return;
    const { hashes, valueCount } = column;
    const { index, count } = this.#part;
    const add = (code: number) => {
      if (count > 1 && hashes[2 * code + 1]! % count !== index) return;
      const { size } = this.#known;
      if (this.#known.numberOf(hashes[2 * code]!, hashes[2 * code + 1]!) < size) return;
      this.#texts.push(column.value(code));
    };
    if (streams === undefined) {
      if (this.#known.size === 0) this.#known.reserve(valueCount / count);
      for (let code = 0; code < valueCount; code++) add(code);
      return;
    }
    const seen = new Uint8Array(valueCount + 1).fill(1, 0, 1);
    for (const stream of streams) {
      const code = codeOf(column, stream);
      if (seen[code] === 1) continue;
      seen[code] = 1;
      add(code - 1);
    }
  }
}

function hasName(table: LabelTable, name: string, streams: Uint32Array): boolean {
  const column = table.column(name);
  return column !== undefined && streams.some((stream) => codeOf(column, stream) > 0);
}
