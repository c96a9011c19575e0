import { internal, type Labels, type Matcher, quote } from "@skald/model";
import type { Column, ImageReader } from "../index-image.js";
import { type SectionReader, section } from "../index-sections.js";
import { matchLabels } from "../match-labels.js";
import type { LabelTable } from "../segment.js";
import {
  codeOf,
  decodeColumn,
  hashPair,
  hashText,
  openColumn,
  partsPerName,
  type StreamColumn,
  type StreamParts,
} from "../stream-columns.js";

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
export class StreamTable implements LabelTable {
  readonly count: number;
  readonly names: readonly string[];
  readonly hashes: Uint32Array;
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
    const [, , codes, streams, valueHashes] = columns[ordinal] as StreamParts;
    for (const lane of [0, 1] as const) {
      const ofName = hashText(name, lane);
      for (let at = 0; at < codes.length; at++) {
        const code = codes[at]!;
        if (code === 0) continue;
        const stream = streams.length === 0 ? at : streams[at]!;
        hashes[2 * stream + lane]! += hashPair(ofName, valueHashes[2 * (code - 1) + lane]!);
      }
    }
  });
  return hashes;
}
