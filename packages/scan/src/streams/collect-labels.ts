import { codeOf, type LabelTable } from "@skald/storage";
import { HashSet } from "./hash-set.js";

/** Puts label names, or the values of one name, of several sources together, each once. */
export class LabelCollector {
  readonly #name: string | undefined;
  readonly #known = new HashSet();
  readonly #texts = new Set<string>();

  /** Collects the values of a name, or all names. */
  constructor(name: string | undefined) {
    this.#name = name;
  }

  /** Adds what the streams of a table have that are in a list; undefined stands for all of them. */
  addTable(table: LabelTable, streams: Uint32Array | undefined): void {
    if (this.#name !== undefined) this.#addValues(table, this.#name, streams);
    else if (streams === undefined) for (const name of table.names) this.#texts.add(name);
    else this.#addNames(table, streams);
  }

  /** Sorted. */
  finish(): string[] {
    return [...this.#texts].sort();
  }

  #addNames(table: LabelTable, streams: Uint32Array): void {
    for (const name of table.names) {
      const column = table.column(name);
      if (this.#texts.has(name) || column === undefined) continue;
      if (streams.some((stream) => codeOf(column, stream) > 0)) this.#texts.add(name);
    }
  }

  #addValues(table: LabelTable, name: string, streams: Uint32Array | undefined): void {
    const column = table.column(name);
    if (column === undefined) return;
    const { hashes, valueCount } = column;
    const add = (code: number) => {
      if (this.#known.add(hashes[2 * code]!, hashes[2 * code + 1]!)) {
        this.#texts.add(column.value(code));
      }
    };
    if (streams === undefined) {
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
