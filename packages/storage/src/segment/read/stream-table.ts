import { internal, type Labels, type Matcher, quote } from "@skald/model";
import { type SectionReader, section } from "../index-sections.js";
import { matchLabels } from "../match-labels.js";
import type { Column, ImageReader } from "./index-image.js";
import {
  codeOf,
  decodeColumn,
  hashBytes,
  openColumn,
  partsPerName,
  type StreamColumn,
} from "./stream-columns.js";

/** The part with the hashes of the streams, before those of the names. */
const hashParts = 1;

/** The parts of an image with the streams of a segment: their hashes, then the columns of each name. Throws `internal`. */
export function decodeStreams(sections: SectionReader, count: number): Column[] {
  const names = sections.texts(section.labelNames);
  const sizes = { streamCount: count, nameCount: names.length };
  const columns = names.map((_, ordinal) => decodeColumn(sections, ordinal, sizes));
  return [hashStreams(count, names, columns), ...columns.flat()];
}

/**
 * The streams of an opened segment, by their labels. Nothing is made per stream before somebody asks for that stream,
 * and what is made is not kept: columns are shared by all threads, texts would not be.
 */
export class StreamTable {
  readonly count: number;
  readonly names: readonly string[];
  /** Two numbers for each stream, equal for equal label sets of any segment, and, as good as surely, for no others. */
  readonly hashes: Uint32Array;
  /** Label sets and texts that were put together so far. */
  made = 0;
  readonly #image: ImageReader;
  readonly #part: number;
  readonly #columns: (StreamColumn | undefined)[] = [];
  readonly #ordinals: ReadonlyMap<string, number>;

  /** The streams of an image, whose parts begin at `part`. */
  constructor(image: ImageReader, part: number, sections: SectionReader, count: number) {
    this.count = count;
    this.names = sections.texts(section.labelNames);
    this.hashes = image.words(part);
    this.#image = image;
    this.#part = part + hashParts;
    this.#ordinals = new Map(this.names.map((name, ordinal) => [name, ordinal]));
  }

  /** The column of a label; undefined when no stream has it. */
  column(name: string): StreamColumn | undefined {
    const ordinal = this.#ordinals.get(name);
    return ordinal === undefined ? undefined : this.#columnAt(ordinal);
  }

  match(matchers: readonly Matcher[]): Uint32Array {
    return matchLabels(this.count, (name) => this.column(name), matchers);
  }

  labels(stream: number): Labels {
    this.made++;
    const names: string[] = [];
    const values: string[] = [];
    this.#forEachPair(stream, (column, code) => {
      names.push(column.name);
      values.push(column.value(code));
    });
    return { names, values };
  }

  /** The same text as `formatLabels` prints. */
  text(stream: number): string {
    this.made++;
    let text = "{";
    this.#forEachPair(stream, (column, code) => {
      if (text.length > 1) text += ", ";
      text += `${column.name}=${quote(column.value(code))}`;
    });
    return `${text}}`;
  }

  /** Columns come in the order of their names, and so do the pairs of a stream. */
  #forEachPair(stream: number, visit: (column: StreamColumn, code: number) => void): void {
    if (!(stream < this.count)) throw internal(`index has no stream ${stream}`);
    for (let ordinal = 0; ordinal < this.names.length; ordinal++) {
      const column = this.#columnAt(ordinal);
      const code = codeOf(column, stream);
      if (code > 0) visit(column, code - 1);
    }
  }

  #columnAt(ordinal: number): StreamColumn {
    this.#columns[ordinal] ??= openColumn(
      this.#image,
      this.#part + ordinal * partsPerName,
      this.names[ordinal]!,
    );
    return this.#columns[ordinal];
  }
}

/** The hash of a label set is the sum of those of its pairs: each distinct value is hashed once. */
function hashStreams(
  count: number,
  names: readonly string[],
  columns: readonly (readonly Column[])[],
): Uint32Array {
  const hashes = new Uint32Array(2 * count);
  names.forEach((name, ordinal) => {
    const nameBytes = Buffer.from(name);
    const [offsets, bytes, codes, streams] = columns[ordinal] as [
      Uint32Array,
      Uint8Array,
      Column,
      Uint32Array,
    ];
    for (const lane of [0, 1] as const) {
      // The same text as a name and as a value must not cancel out.
      const ofName = Math.imul(hashBytes(nameBytes, 0, nameBytes.length, lane), 0x9e3779b1);
      const ofValue = new Uint32Array(offsets.length);
      for (let code = 0; code + 1 < offsets.length; code++) {
        ofValue[code + 1] = mix(
          ofName ^ hashBytes(bytes, offsets[code]!, offsets[code + 1]!, lane),
        );
      }
      for (let at = 0; at < codes.length; at++) {
        const stream = streams.length === 0 ? at : streams[at]!;
        hashes[2 * stream + lane]! += ofValue[codes[at]!]!;
      }
    }
  });
  return hashes;
}

function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
